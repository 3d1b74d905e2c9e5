'use strict';
// The body of GET models/{path}, as Publisher's clients read it; the gateway adds `resource`.
const malloy = require('./malloy');
const {isNotebook} = require('./package');
const {cellsOf} = require('./notebook');

const {M} = malloy;

function describeModel(pkg, path) {
    const model = pkg.modelOf(path);
    const definition = malloy.definition(model);
    const shown = ({name}) => definition.exports.includes(name);
    const sources = malloy.namedSources(model).filter(shown);
    const body = {
        type: isNotebook(path) ? 'notebook' : 'source',
        packageName: pkg.name,
        modelPath: path,
        malloyVersion: malloy.version,
        modelInfo: JSON.stringify(M.modelDefToModelInfo(definition)),
        sourceInfos: sources.map(({def}) => JSON.stringify(M.sourceDefToSourceInfo(def))),
        sources: sources.map(describeSource),
        queries: malloy.namedQueries(model).filter(shown).map(describeQuery),
        givens: [...model.givens.values()].map(describeGiven),
        annotations: texts(model.annotations),
    };
    if (isNotebook(path)) {
        body.notebookCells = cellsOf(pkg.files.get(path)).map(cell => ({
            type: cell.kind === 'markdown' ? 'markdown' : 'code',
            text: cell.text,
        }));
    }
    return body;
}

const texts = annotations => annotations.texts().map(text => text.trimEnd());
const textsOf = def => texts(malloy.annotationsOf(def));

function describeSource({name, def}) {
    const views = def.fields.filter(field => field.type === 'turtle' && !field.accessModifier);
    return {
        name,
        annotations: textsOf(def),
        views: views.map(view => ({name: view.as || view.name, annotations: textsOf(view)})),
        filters: [],
    };
}

function describeQuery({name, def}) {
    const source = typeof def.structRef === 'string' ? def.structRef : undefined;
    return {name, sourceName: source, annotations: textsOf(def)};
}

function describeGiven(given) {
    return {
        name: given.name,
        type: given.type.type,
        required: given.default === undefined,
        annotations: texts(given.annotations),
    };
}

module.exports = {describeModel};

'use strict';
// What a Load answers about each model of its package.
const malloy = require('./malloy');
const {isNotebook} = require('./package');
const {planOf} = require('./plan');
const {cleanText} = require('./problems');
const {mentions} = require('./walk');
const scan = require('./scan');
const tags = require('./tags');

const QUOTE = 'persist annotation name must be quoted';

function reportOf(pkg, path, wantPlan) {
    const {model, error} = pkg.models.get(path);
    const contents = pkg.files.get(path);
    const report = {
        path,
        error,
        problems: pkg.problemsOf(path),
        is_notebook: isNotebook(path),
        locks: scan.lockLines(contents).map(({line, text}) => lockText(path, line, text)),
        tag_problems: isNotebook(path) ? [] : tagProblems(pkg, path, model, contents),
    };
    if (!model) {
        return report;
    }
    try {
        return {...report, ...modelReport(pkg, path, model, report, wantPlan)};
    } catch (e) {
        const text = `model '${path}' cannot be planned: ${cleanText(e.message)}`;
        return {...report, flagged: malloy.isFlagged(model), error: text};
    }
}

function modelReport(pkg, path, model, report, wantPlan) {
    const found = mentions(malloy.definition(model));
    const flagged = malloy.isFlagged(model);
    const walked = flagged && !report.is_notebook;
    const locks = found.locks.map(l => lockText(pkg.paths.path(l.url) || path, l.line, l.text));
    return {
        flagged,
        flagged_own: malloy.isFlaggedOwn(model),
        reads_tables: found.tables,
        locks: [...new Set([...report.locks, ...locks])],
        imports: pkg.models.get(path).imports,
        notes: tags.modelNotes(model.annotations.parseAsTag().tag),
        sources: wantPlan && walked ? planOf(pkg, path).sources : [],
        dropped: wantPlan && walked ? droppedOf(pkg, path, model) : [],
        unreached:
            report.is_notebook || flagged ? [] : annotated(pkg, model, path).map(s => s.name),
    };
}

const lockText = (path, line, text) => `${path}:${line + 1}: ${text.trim()}`;

// Sources in the namespace whose effective '@' tag says persist; those declared in `path` if given.
function annotated(pkg, model, path) {
    return malloy.namedSources(model).filter(({def}) => {
        const own = !path || pkg.paths.path(def.location && def.location.url) === path;
        return own && malloy.annotationsOf(def).parseAsTag('@').tag.has('persist');
    });
}

// Annotated, but of a shape that cannot be stored: the compiler passes over them without a word.
function droppedOf(pkg, path, model) {
    const planned = new Set(planOf(pkg, path).sources.map(source => source.source_id));
    return annotated(pkg, model)
        .map(({name, def}) => {
            const declared = (def.location && pkg.paths.path(def.location.url)) || path;
            const id = def.sourceID
                ? pkg.paths.outward(def.sourceID)
                : pkg.paths.sourceId(name, declared);
            const line = def.location ? def.location.range.start.line : 0;
            return {name, source_id: id, type: def.type, path: declared, line};
        })
        .filter(dropped => !planned.has(dropped.source_id));
}

// Problems of persist annotations in the file `path`, which cost the whole annotation silently. The
// raw lines are read too: a file that does not compile has no sources to ask.
function tagProblems(pkg, path, model, contents) {
    const found = new Map();
    const add = problem => {
        const known = found.get(problem.line);
        found.set(problem.line, known || {severity: 'error', path, ...problem});
    };
    scan.bareNameLines(contents).forEach(({line, text}) => add(bareName(line, text)));
    for (const {def} of model ? malloy.namedSources(model) : []) {
        const annotations = malloy.annotationsOf(def);
        const notes = annotations.forRoute('@');
        const isPersist = notes.some(note => /^\s*persist\b/.test(note.content));
        for (const note of notes) {
            const own = pkg.paths.path(note.at.url) === path;
            if (own && isPersist && scan.hasBareName(note.content)) {
                add(bareName(note.at.range.start.line, note.text));
            }
        }
        annotations
            .parseAsTag('@')
            .log.forEach(log => addParseError(pkg, path, isPersist, log, add));
    }
    return [...found.values()].sort((a, b) => a.line - b.line);
}

function bareName(line, text) {
    const message = `${QUOTE}: write name="..." instead of: ${text.trim()}`;
    return {code: 'persist-name-unquoted', message, line, end_line: line};
}

function addParseError(pkg, path, isPersist, log, add) {
    if (log.at && pkg.paths.path(log.at.url) !== path) {
        return;
    }
    const at = log.at ? log.at.range.start : {line: 0, character: 0};
    add({
        severity: isPersist && log.severity === 'error' ? 'error' : 'warn',
        code: log.code,
        message: isPersist ? `${QUOTE} and its line well formed: ${log.message}` : log.message,
        line: at.line,
        character: at.character,
        end_line: at.line,
        end_character: at.character,
    });
}

module.exports = {reportOf};

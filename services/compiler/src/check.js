'use strict';
// POST compile: text that is not stored, checked as part of a model. It may name new tables; their
// schemas come in rounds, as for a Load, and the loaded package never learns of them.
const malloy = require('./malloy');
const {Fault, faultOf, problemsOf} = require('./problems');
const {Package} = require('./package');
const {makePlan} = require('./plan');
const {entriesOf, givensOf} = require('./query');

// {needs} or {checked}
async function check(pkg, request) {
    const scope = request.scope || 'append';
    if (!['append', 'file', 'package'].includes(scope)) {
        throw new Fault('bad_request', `scope '${scope}' is none of append, file, package`);
    }
    if (!pkg.files.has(request.model)) {
        throw new Fault('not_found', `package '${pkg.name}' has no model '${request.model}'`);
    }
    const schemas = pkg.schemas.fork(request);
    const run = scope === 'package' ? checkPackage : checkText;
    const checked = await run(pkg, request, schemas, scope);
    const needs = schemas.needs();
    return needs ? {needs} : {checked};
}

async function checkText(pkg, request, schemas, scope) {
    // Reads what is compiled already, keeps nothing of what it compiles.
    const cache = {
        getCachedModelDef: (reader, url) => pkg.cache.getCachedModelDef(reader, url),
        setCachedModelDef: async () => false,
    };
    const host = {...pkg.host, connections: pkg.connections.over(schemas), cache};
    const own = new URL(pkg.paths.url(request.model));
    const unit =
        scope === 'file'
            ? {url: own, text: request.source}
            : {text: request.source, model: pkg.modelOf(request.model), importBase: own};
    try {
        const model = await malloy.compile(host, unit);
        const problems = problemsOf(model.problems, pkg.paths);
        return {ok: true, problems, sql: request.include_sql ? sqlOf(pkg, model, request) : ''};
    } catch (e) {
        return failed(faultOf(e, pkg.paths));
    }
}

// The whole package with `source` in place of one file.
async function checkPackage(pkg, request, schemas) {
    const files = pkg.load.files.filter(f => f.path !== request.model);
    files.push({path: request.model, contents: request.source});
    const trial = new Package({...pkg.load, files});
    trial.schemas = schemas;
    trial.connections = pkg.connections.over(schemas);
    await trial.compile();
    const entries = [...trial.models.values()];
    const seen = new Set();
    const problems = entries
        .flatMap(entry => entry.problems)
        .filter(p => !seen.has(JSON.stringify(p)) && seen.add(JSON.stringify(p)));
    const {model} = trial.models.get(request.model);
    try {
        const sql = model && request.include_sql ? sqlOf(trial, model, request) : '';
        return {ok: entries.every(entry => entry.model), problems, sql};
    } catch (e) {
        return failed(faultOf(e, pkg.paths));
    }
}

// SQL of the last `run:`, '' where there is none.
function sqlOf(pkg, model, request) {
    if (malloy.queryCount(model) === 0) {
        return '';
    }
    const bound = malloy.isFlagged(model) && request.manifest.length > 0;
    const entries = bound ? entriesOf(makePlan(pkg, model), request.manifest) : {};
    const spy = malloy.manifestSpy(entries);
    return malloy.prepare(malloy.lastQuery(model), {
        givens: givensOf(request.givens_json),
        buildManifest: bound ? spy.buildManifest : undefined,
        connectionDigests: pkg.digests,
    }).sql;
}

function failed(fault) {
    const problem = {severity: 'error', code: fault.code, message: fault.message};
    return {ok: false, problems: fault.problems.length > 0 ? fault.problems : [problem]};
}

module.exports = {check};

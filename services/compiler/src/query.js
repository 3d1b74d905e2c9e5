'use strict';
// Queries and build SQL: caller text, views and named queries to SQL, with exact manifest hits.
const malloy = require('./malloy');
const {Fault, cleanText, faultOf, problemsOf} = require('./problems');
const {planOf} = require('./plan');
const {splitResult} = require('./result');
const tags = require('./tags');

const NO_VALUE = 'compiler-given-no-value';

// A request's manifest as the compiler takes it, without ids that depend on a caller's givens.
function entriesOf(plan, manifest) {
    const entries = Object.create(null);
    for (const {build_id: id, table} of manifest) {
        if (!plan.unsafe.has(id)) {
            entries[id] = {tableName: table};
        }
    }
    return entries;
}

function givensOf(text) {
    if (!text) {
        return undefined;
    }
    let givens;
    try {
        givens = JSON.parse(text);
    } catch (e) {
        throw new Fault('bad_request', `givens are not JSON: ${e.message}`);
    }
    if (givens === null || typeof givens !== 'object' || Array.isArray(givens)) {
        throw new Fault('bad_request', 'givens must be a JSON object of name and value');
    }
    return givens;
}

async function compileQuery(pkg, request) {
    const model = pkg.modelOf(request.model);
    const flagged = malloy.isFlagged(model);
    const bound = flagged && request.manifest.length > 0;
    const options = {
        givens: givensOf(request.givens_json),
        defaultRowLimit: request.default_row_limit || undefined,
    };
    const problems = [];
    try {
        const plan = bound && planOf(pkg, request.model);
        const spy = bound && malloy.manifestSpy(entriesOf(plan, request.manifest));
        const query = await selectQuery(pkg, model, request);
        problems.push(...problemsOf(query.problems || [], pkg.paths));
        const made = prepareOrLive(pkg, query, options, spy, problems);
        const said = metadataOf(pkg, model, query);
        return {...answer(made, pkg), flagged, problems, ...used(plan, made.spy), ...said};
    } catch (e) {
        throw faultOf(e, pkg.paths);
    }
}

// Under the manifest, or, where a given without a value stands in a persisted query, without it:
// what the source reads then depends on the caller, so no table may answer (decisions 1.5).
function prepareOrLive(pkg, query, options, spy, problems) {
    if (!spy) {
        return malloy.prepare(query, options);
    }
    const under = {...options, buildManifest: spy.buildManifest, connectionDigests: pkg.digests};
    try {
        return {...malloy.prepare(query, under), spy};
    } catch (e) {
        if (e.code !== NO_VALUE) {
            throw e;
        }
        const live = malloy.prepare(query, options);
        problems.push({
            severity: 'warn',
            code: 'given_in_persisted_query',
            message:
                'a persisted query reads a given, so this query runs live: ' + cleanText(e.message),
        });
        return live;
    }
}

function answer(made, pkg) {
    const connection = pkg.connections.stubs.get(made.connection);
    return {
        sql: made.sql,
        connection: made.connection,
        dialect: connection ? connection.dialectName : '',
        row_limit: made.limit,
        limit_added: made.limitAdded,
        ...splitResult(made.stable()),
    };
}

// Build ids asked of the manifest, and the sources that they belong to, hits first.
function used(plan, spy) {
    if (!spy) {
        return {hits: [], misses: [], persist_sources: []};
    }
    const hits = [...spy.hits];
    const misses = [...spy.misses];
    const sourceOf = id => (plan.byBuildId.get(id) || {source_id: ''}).source_id;
    return {hits, misses, persist_sources: [...hits, ...misses].map(sourceOf)};
}

// Query metadata of the source that a query begins with, strongest first: its own, then that of the
// model file that declares it (spec/malloy-persistence.md 2.5).
function metadataOf(pkg, model, query) {
    const {name, def} = malloy.startOf(query);
    const home = pkg.paths.path(def && def.location && def.location.url);
    const declaring = (pkg.models.get(home) || {}).model || model;
    const notes = tags.modelNotes(declaring.annotations.parseAsTag().tag);
    const under = prefix =>
        notes
            .filter(({key}) => key.startsWith(prefix))
            .map(({key, value}) => ({key: key.slice(prefix.length), value}));
    const own = tags.flatten(malloy.annotationsOf(def).parseAsTag('@').tag);
    return {
        source: name,
        query_metadata: [
            ...tags.queryMetadata(own),
            ...under('queryMetadata.'),
            ...under('materialization.queryMetadata.'),
        ],
    };
}

async function selectQuery(pkg, model, request) {
    const {text, source_name: source, query_name: name} = request;
    if (text && !source && !name) {
        return restrictedQuery(pkg, model, text);
    }
    if (!text && source && name) {
        return restrictedQuery(pkg, model, viewText(model, request.model, source, name));
    }
    if (!text && name) {
        return modelQuery(model, request.model, name);
    }
    throw new Fault(
        'bad_request',
        'a query is text, or a query name with or without a source name'
    );
}

async function restrictedQuery(pkg, model, text) {
    const compiled = await malloy.compile(pkg.host, {text, model, restricted: true});
    if (malloy.queryCount(compiled) === 0) {
        throw new Fault('compile_error', "the query text has no 'run:' statement");
    }
    if (malloy.declaresPersist(compiled)) {
        throw new Fault('compile_error', "a query text cannot declare '#@ persist'");
    }
    const query = malloy.lastQuery(compiled);
    return Object.assign(query, {problems: compiled.problems});
}

// Plain names only: what a backtick cannot quote is no name of the model.
function viewText(model, path, source, view) {
    const plain = name => !/[`\\\r\n]/.test(name);
    const known = malloy.namedSources(model).find(s => s.name === source);
    if (!known || !plain(source)) {
        throw new Fault('not_found', `model '${path}' has no source '${source}'`);
    }
    const field = known.def.fields.find(f => (f.as || f.name) === view);
    if (!field || field.type !== 'turtle' || !plain(view)) {
        throw new Fault('not_found', `source '${source}' of '${path}' has no view '${view}'`);
    }
    return `run: \`${source}\` -> \`${view}\``;
}

function modelQuery(model, path, name) {
    if (!malloy.namedQueries(model).some(q => q.name === name)) {
        throw new Fault('not_found', `model '${path}' has no query '${name}'`);
    }
    return malloy.namedQuery(model, name);
}

// The statement that makes one persist source's table, reading the tables of `manifest`.
function buildSql(pkg, request) {
    const model = pkg.modelOf(request.model);
    const ownId = pkg.paths.inward(request.source_id);
    const plan = planOf(pkg, request.model);
    if (!ownId || !plan.sources.some(s => s.source_id === request.source_id)) {
        const text = `model '${request.model}' reaches no persist source '${request.source_id}'`;
        throw new Fault('not_found', text);
    }
    try {
        const spy = malloy.manifestSpy(entriesOf(plan, request.manifest));
        const ps = malloy.persistSource(model, ownId);
        const options = {buildManifest: spy.buildManifest, connectionDigests: pkg.digests};
        const {sql} = malloy.buildSql(model, ps, options);
        return {sql, hits: [...spy.hits], misses: [...spy.misses]};
    } catch (e) {
        throw faultOf(e, pkg.paths);
    }
}

module.exports = {compileQuery, buildSql, entriesOf, givensOf};

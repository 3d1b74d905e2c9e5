'use strict';
// The one file that touches the compiler's API. Names with an underscore, `queryModel.compileQuery`
// and the shape of definitions are not public: they are used here and nowhere else, pinned by the
// exact version in package.json and by test/golden.test.js.
const M = require('@malloydata/malloy');
const {mkArrayDef, mkFieldDef} = require('@malloydata/malloy/internal');

const FLAG_PATH = ['experimental', 'persistence'];

// Compiles a file (`url`) or a text (`text`, at `url` if one is given), on top of `model` if given.
// Throws MalloyError. A text of a caller is always compiled with `restricted`.
function compile(host, {url, text, model, restricted, importBase}) {
    return M.Malloy.compile({
        url,
        source: text,
        importBaseURL: importBase,
        urlReader: host.urlReader,
        connections: host.connections,
        cacheManager: restricted ? undefined : host.cache,
        model,
        restrictedMode: restricted || undefined,
        method: restricted ? 'query' : model ? 'extendModel' : undefined,
    });
}

function newCache() {
    return new M.CacheManager(new M.InMemoryModelCache());
}

// ---- definitions -------------------------------------------------------------------------------

const definition = model => model._modelDef;
const annotationsOf = def => new M.Annotations(def && def.annotations);

// [{name, def}] of the sources in the model's namespace, in order.
function namedSources(model) {
    return Object.entries(definition(model).contents)
        .filter(([, def]) => M.isSourceDef(def))
        .map(([name, def]) => ({name, def}));
}

function namedQueries(model) {
    return Object.entries(definition(model).contents)
        .filter(([, def]) => def.type === 'query')
        .map(([name, def]) => ({name, def}));
}

function isFlagged(model) {
    return model.modelAnnotations.parseAsTag('!').tag.has(...FLAG_PATH);
}

function isFlaggedOwn(model) {
    return model.annotations.parseAsTag('!').tag.has(...FLAG_PATH);
}

// URLs that the model's file imports itself, in order, each once.
function directImports(model) {
    return [...new Set((definition(model).imports || []).map(i => i.importURL))];
}

function registryDef(model, sourceId) {
    const value = definition(model).sourceRegistry[sourceId];
    if (!value) {
        return undefined;
    }
    if (value.entry.type === 'source_registry_reference') {
        return definition(model).contents[value.entry.name];
    }
    return value.entry;
}

// ---- persistence -------------------------------------------------------------------------------

// [{sourceID, persistent, dependsOn}], dependencies first. Throws on an unflagged model.
function walkPersistSources(model) {
    return [...model._walkPersistSources([])];
}

const persistSource = (model, sourceId) => model._persistSourceFor(sourceId);
const sourceDefOf = ps => ps._sourceDef;

// A Map's stand-in for resolved givens that records which ones the SQL asked for and binds none.
function givenSpy() {
    const asked = new Set();
    return {asked, size: 1, get: id => void asked.add(id), has: () => false};
}

// Entries of a manifest ({tableName} by build id) that record what was asked of them.
// With `all`, every build id that `entries` lacks is answered by a made-up name.
function manifestSpy(entries, all) {
    const hits = new Set();
    const misses = new Set();
    const manifest = new Proxy(entries, {
        get(target, key) {
            if (typeof key !== 'string' || !/^[0-9a-f]{64}$/.test(key)) {
                return undefined;
            }
            const entry = Object.hasOwn(target, key) ? target[key] : undefined;
            (entry ? hits : misses).add(key);
            return entry || (all ? {tableName: 'x'} : undefined);
        },
    });
    return {hits, misses, buildManifest: {entries: manifest, strict: false}};
}

// The build SQL of a persist source and what it was made from. Without a manifest it is the text
// that the identity hashes. {sql, fields (undefined for a SQL block), givens: Set of the ids read}.
function buildSql(model, ps, options) {
    const spy = givenSpy();
    const withSpy = {...options, resolvedGivens: spy};
    const def = sourceDefOf(ps);
    if (def.type === 'sql_select') {
        return {sql: ps.getSQL(withSpy), givens: spy.asked};
    }
    const compiled = model.queryModel.compileQuery(def.query, withSpy, false);
    const structs = compiled.structs;
    return {sql: compiled.sql, fields: structs[structs.length - 1].fields, givens: spy.asked};
}

// True when the text itself, not the model beneath it, annotates a source with '#@ persist'.
function declaresPersist(compiled) {
    const own = at => at && at.url.startsWith('internal://');
    const says = note => own(note.at) && /(^|[^\w-])persist\b/.test(note.content);
    return namedSources(compiled)
        .filter(({def}) => own(def.location))
        .some(({def}) => annotationsOf(def).forRoute('@').some(says));
}

// ---- queries -----------------------------------------------------------------------------------

// Every unnamed `run:` of the model itself; a query text adds to none of them.
const queryCount = model => definition(model).queryList.length;

function lastQuery(model) {
    return model.getPreparedQuery();
}

function namedQuery(model, name) {
    return model.getPreparedQueryByName(name);
}

// The source that a query begins with, {name, def}; def may be undefined.
function startOf(query) {
    const known = definition(query._model).contents;
    let ref = query._query.structRef;
    for (let depth = 0; depth < 32; depth++) {
        const def = typeof ref === 'string' ? known[ref] : ref;
        if (!def || def.type !== 'query') {
            const name = typeof ref === 'string' ? ref : (def && (def.as || def.name)) || '';
            return {name, def};
        }
        ref = def.structRef;
    }
    return {name: '', def: undefined};
}

function prepare(query, options) {
    const result = query.getPreparedResult(options);
    const raw = result._rawQuery;
    return {
        sql: result.sql,
        connection: result.connectionName,
        stable: () => result.toStableResult(),
        limit: result.resultExplore.limit || 0,
        limitAdded: Boolean(raw.defaultRowLimitAdded),
        result,
    };
}

module.exports = {
    M,
    mkArrayDef,
    mkFieldDef,
    compile,
    newCache,
    definition,
    annotationsOf,
    namedSources,
    namedQueries,
    isFlagged,
    isFlaggedOwn,
    directImports,
    registryDef,
    walkPersistSources,
    persistSource,
    sourceDefOf,
    manifestSpy,
    buildSql,
    declaresPersist,
    queryCount,
    lastQuery,
    namedQuery,
    startOf,
    prepare,
    version: M.Malloy.version,
};

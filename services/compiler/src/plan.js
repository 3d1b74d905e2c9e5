'use strict';
// The persist plan of a flagged model: every reachable persist source, dependencies first, each in
// a try of its own, so that one that cannot be planned leaves its siblings planned.
const malloy = require('./malloy');
const {isAtomic, typeText} = require('./dialects');
const {cleanText} = require('./problems');
const tags = require('./tags');

const GATES = ['authorize', 'access_filter'];

// {sources: [Source message], byBuildId: Map of build id to the source that names it,
// unsafe: Set of build ids that at least one source reaches through a given}
function planOf(pkg, path) {
    const known = pkg.plans.get(path);
    if (known) {
        return known;
    }
    const plan = makePlan(pkg, pkg.modelOf(path));
    pkg.plans.set(path, plan);
    return plan;
}

// The plan of a compiled model that is not kept.
function makePlan(pkg, model) {
    const rows = [];
    if (malloy.isFlagged(model)) {
        for (const node of malloy.walkPersistSources(model)) {
            if (node.persistent) {
                rows.push(planSource(pkg, model, node.sourceID));
            }
        }
    }
    const planned = rows.filter(row => row.source.build_id);
    const ids = new Set(planned.map(row => row.source.build_id));
    for (const row of planned) {
        row.source.depends_on = dependencies(pkg, model, row, ids);
    }
    return finish(pkg, model, rows);
}

function planSource(pkg, model, ownId) {
    const ps = malloy.persistSource(model, ownId);
    const def = malloy.sourceDefOf(ps);
    const row = {ownId, ps, def, source: describe(pkg, ps, ownId)};
    try {
        const digest = pkg.digests[ps.connectionName];
        if (digest === undefined) {
            throw new Error(`connection '${ps.connectionName}' is not configured`);
        }
        const built = malloy.buildSql(model, ps, {});
        row.source.sql = built.sql;
        row.source.build_id = ps.makeBuildId(digest, built.sql);
        row.source.given_in_query ||= built.givens.size > 0;
        row.source.columns = columnsOf(built.fields || blockFields(pkg, ps, built.sql));
    } catch (e) {
        fail(row.source, e);
    }
    return row;
}

function fail(source, error) {
    source.failed_code = error.code || 'compile';
    source.failed_text = cleanText(error.message);
    source.given_in_query ||= error.code === 'compiler-given-no-value';
}

// What is true of a source whether or not it can be planned.
function describe(pkg, ps, ownId) {
    const def = malloy.sourceDefOf(ps);
    const tag = ps.annotations.parseAsTag('@').tag;
    const pairs = tags.flatten(tag);
    const at = ps.location;
    return {
        source_id: pkg.paths.outward(ownId),
        name: ownId.slice(0, ownId.lastIndexOf('@mpkg://')),
        declared_in: pkg.paths.path(at ? at.url : ownId.slice(ownId.lastIndexOf('@mpkg://') + 1)),
        line: at ? at.range.start.line : 0,
        character: at ? at.range.start.character : 0,
        connection: ps.connectionName,
        dialect: ps.dialectName,
        type: def.type,
        tag: pairs,
        name_property: tag.text('name') || '',
        has_name: tag.has('name'),
        given_in_query: readsGiven(def),
        free_parameters: freeParameters(def),
        gates: GATES.flatMap(route => ps.annotations.texts(route)).map(text => text.trim()),
        unknown_tag_keys: tags.unknownKeys(pairs),
        query_metadata: tags.queryMetadata(pairs),
    };
}

// The definition says so: in a query's own usage, and inside the segments of a SQL block, where the
// segment's own usage may be absent (spec/malloy-compiler.md 13).
function readsGiven(def) {
    const used = list => (list || []).length > 0;
    if (def.node === 'given' || def.node === 'givenReference') {
        return true;
    }
    if (def.query && (used(def.query.givenUsage) || readsGiven(def.query))) {
        return true;
    }
    if (def.structRef && typeof def.structRef === 'object' && readsGiven(def.structRef)) {
        return true;
    }
    return (def.selectSegments || []).some(s => used(s.givenUsage) || readsGiven(s));
}

function freeParameters(def) {
    return Object.entries(def.parameters || {})
        .filter(([, parameter]) => parameter.value === null || parameter.value === undefined)
        .map(([name]) => name);
}

function columnsOf(fields) {
    return fields
        .filter(field => isAtomic(field) && !field.e)
        .map(field => ({name: field.as || field.name, data_type: typeText(field)}));
}

// A SQL block's output is what its warehouse described; its source may hide columns of it.
function blockFields(pkg, ps, sql) {
    const stub = pkg.connections.stubs.get(ps.connectionName);
    return stub.describedSql(sql) || malloy.sourceDefOf(ps).fields;
}

// Build ids that the build SQL reads when every planned source has a table: exact, where the walk's
// edges hold joins that the SQL never mentions.
function dependencies(pkg, model, row, ids) {
    const spy = malloy.manifestSpy({}, true);
    try {
        malloy.buildSql(model, row.ps, {
            buildManifest: spy.buildManifest,
            connectionDigests: pkg.digests,
        });
    } catch (e) {
        fail(row.source, e);
    }
    return [...spy.misses].filter(id => ids.has(id) && id !== row.source.build_id);
}

function finish(pkg, model, rows) {
    const byOwnId = new Map(rows.map(row => [row.ownId, row]));
    const byBuildId = new Map();
    for (const row of rows) {
        const {source} = row;
        source.extends = extended(pkg, model, row, byOwnId);
        const first = byBuildId.get(source.build_id);
        if (source.build_id && (!first || (first.extends && !source.extends))) {
            byBuildId.set(source.build_id, source);
        }
    }
    for (const {source} of rows) {
        source.depends_on_sources = (source.depends_on || []).map(
            id => byBuildId.get(id).source_id
        );
    }
    number(rows.map(row => row.source));
    return {sources: rows.map(row => row.source), byBuildId, unsafe: unsafeIds(rows)};
}

// A given's default is compiled into the SQL that the identity hashes, so a source that reads a
// given shares its build id with one that has the same literal: a table of the second must not
// answer for the first, whose caller may have supplied another value.
function unsafeIds(rows) {
    const reading = rows.filter(({source}) => source.build_id && source.given_in_query);
    return new Set(reading.map(row => row.source.build_id));
}

// The persisted source whose identity this one inherits by `extend` (or as another name for it).
function extended(pkg, model, row, byOwnId) {
    let def = row.def;
    for (let hops = 0; hops < 100 && def; hops++) {
        const next = def.extends || def.referenceID;
        if (!next || next === row.ownId) {
            return '';
        }
        const upstream = byOwnId.get(next);
        if (upstream) {
            const same = upstream.source.build_id === row.source.build_id;
            return same && row.source.build_id ? upstream.source.source_id : '';
        }
        def = malloy.registryDef(model, next);
    }
    return '';
}

// Position of each among the persist sources of its file.
function number(sources) {
    const files = new Map();
    const inOrder = [...sources].sort((a, b) => a.line - b.line || a.character - b.character);
    for (const source of inOrder) {
        const next = files.get(source.declared_in) || 0;
        source.ordinal = next;
        files.set(source.declared_in, next + 1);
    }
}

module.exports = {planOf, makePlan};

'use strict';
// What a load reports of each model, asked of the bundle.
const {test, before, after} = require('node:test');
const assert = require('node:assert/strict');
const {createHash} = require('node:crypto');
const {Client, load, modelOf, sourceOf} = require('./client');
const {files, catalog} = require('./shop');

let client;
let reply;
let rounds;
before(async () => {
    client = new Client();
    ({reply, rounds} = await load(client, files, catalog));
});
after(() => client.close());

const model = path => modelOf(reply, path);
const names = list => list.map(item => item.name);
const loaded = async (texts, more, tables = catalog) =>
    (await load(client, texts, tables, {load_id: 'other', ...more})).reply;

test('needs are asked once each, a block over a block in a later round', async () => {
    const request = {
        load_id: 'n',
        package: 'shop',
        plan: true,
        connections: [{name: 'pg', dialect: 'postgres', digest: 'd1'}],
        files: Object.entries(files).map(([path, contents]) => ({path, contents})),
    };
    const first = await client.ask('load', request);
    assert.equal(first.kind, 'needs');
    assert.deepEqual(
        first.tables.map(t => t.path),
        ['shop.orders']
    );
    assert.deepEqual(
        first.sqls.map(s => s.sql),
        ['select 1 as top_n']
    );
    assert.ok(rounds >= 3, `rounds: ${rounds}`);
    assert.equal(
        (await client.ask('query', {load_id: 'n', model: 'base.malloy'})).error_code,
        'not_loaded'
    );
});

test('every model is reported, sorted, with its flags and imports', () => {
    assert.equal(reply.kind, 'loaded');
    const rows = reply.models.map(m => [
        m.path,
        m.flagged,
        m.flagged_own,
        m.is_notebook,
        m.imports,
    ]);
    assert.deepEqual(rows, [
        ['base.malloy', true, true, false, []],
        ['flagless.malloy', false, false, false, []],
        ['given.malloy', true, true, false, []],
        ['reaches.malloy', true, true, false, ['flagless.malloy']],
        ['story.malloynb', true, false, true, ['base.malloy']],
        ['sub/main.malloy', true, false, false, ['base.malloy']],
    ]);
    reply.models.forEach(m => assert.equal(m.error, '', m.path));
});

test('the plan has dependencies first and exact edges', () => {
    const {sources} = model('base.malloy');
    assert.deepEqual(names(sources), ['fact', 'fact_ext', 'per_region', 'top', 'block']);
    const fact = sourceOf(model('base.malloy'), 'fact');
    const edges = Object.fromEntries(sources.map(s => [s.name, s.depends_on]));
    assert.deepEqual(edges, {
        fact: [],
        fact_ext: [],
        per_region: [fact.build_id],
        top: [],
        block: [fact.build_id],
    });
    assert.deepEqual(sourceOf(model('base.malloy'), 'block').depends_on_sources, [fact.source_id]);
});

test('a persist source is described in full', () => {
    const fact = sourceOf(model('base.malloy'), 'fact');
    assert.equal(fact.source_id, 'fact@mpkg://shop/base.malloy');
    assert.equal(fact.declared_in, 'base.malloy');
    assert.equal(fact.line, 10);
    assert.equal(fact.ordinal, 0);
    assert.deepEqual(
        [fact.connection, fact.dialect, fact.type],
        ['pg', 'postgres', 'query_source']
    );
    assert.deepEqual([fact.name_property, fact.has_name], ['mart.fact', true]);
    const tag = Object.fromEntries(fact.tag.map(t => [t.key, t.value]));
    assert.deepEqual(tag, {
        persist: '',
        name: 'mart.fact',
        'freshness.window': '24h',
        'freshness.fallback': 'live',
        colour: 'red',
        'queryMetadata.team': 'x',
    });
    assert.deepEqual(fact.query_metadata, [{key: 'team', value: 'x'}]);
    assert.deepEqual(fact.unknown_tag_keys, ['colour']);
    assert.deepEqual(
        fact.columns.map(c => `${c.name}::${c.data_type}`),
        [
            'region::string',
            'ordered_month::timestamp',
            'tags::string[]',
            'revenue::number',
            'n::number',
        ]
    );
    const parts = `2:d1/${fact.sql.length}:${fact.sql}`;
    assert.equal(fact.build_id, createHash('sha256').update(parts).digest('hex'));
});

test('an extension has the id of what it extends and says so; an opt-out is no target', () => {
    const ext = sourceOf(model('base.malloy'), 'fact_ext');
    assert.equal(ext.build_id, sourceOf(model('base.malloy'), 'fact').build_id);
    assert.equal(ext.extends, 'fact@mpkg://shop/base.malloy');
    assert.equal(sourceOf(model('base.malloy'), 'fact_live'), undefined);
    assert.equal(sourceOf(model('base.malloy'), 'per_region').extends, '');
});

test('columns of a SQL block are those its warehouse described', () => {
    const block = sourceOf(model('base.malloy'), 'block');
    assert.equal(block.type, 'sql_select');
    assert.deepEqual(names(block.columns), ['region', 'revenue']);
});

test('sources of imported files belong to the file that declares them', () => {
    const main = model('sub/main.malloy');
    assert.equal(sourceOf(main, 'per_region').declared_in, 'base.malloy');
    const deep = sourceOf(main, 'deep');
    assert.equal(deep.source_id, 'deep@mpkg://shop/sub/main.malloy');
    assert.deepEqual(deep.depends_on_sources, ['per_region@mpkg://shop/base.malloy']);
});

test('a given counts where the build would read it, and only there', () => {
    const sources = Object.fromEntries(model('given.malloy').sources.map(s => [s.name, s]));
    const reads = Object.values(sources)
        .filter(s => s.given_in_query)
        .map(s => s.name)
        .sort();
    assert.deepEqual(reads, ['in_base', 'in_query', 'in_segment', 'over_segment', 'required']);
    assert.equal(sources.required.failed_code, 'compiler-given-no-value');
    assert.match(sources.required.failed_text, /'REQUIRED' has no value/);
    assert.doesNotMatch(sources.required.failed_text, /\.run\(/);
    Object.values(sources)
        .filter(s => s.name !== 'required')
        .forEach(s => assert.match(s.build_id, /^[0-9a-f]{64}$/, s.name));
});

test('a flag folds through imports and reaches flagless files', () => {
    assert.deepEqual(model('flagless.malloy').unreached, ['quiet']);
    assert.deepEqual(model('flagless.malloy').sources, []);
    assert.deepEqual(names(model('reaches.malloy').sources), ['quiet']);
    assert.equal(model('reaches.malloy').sources[0].declared_in, 'flagless.malloy');
});

test("model notes are the file's own", () => {
    assert.deepEqual(model('base.malloy').notes, [
        {key: 'materialization.freshness.window', value: '1h'},
        {key: 'queryMetadata.owner', value: 'bi'},
    ]);
    assert.deepEqual(model('sub/main.malloy').notes, []);
});

test('tables read are listed with their connection', () => {
    assert.deepEqual(model('base.malloy').reads_tables, ['pg\x1fshop.orders']);
});

test('a notebook compiles as a chain and is never walked', async () => {
    assert.deepEqual(model('story.malloynb').sources, []);
    const broken = {
        ...files,
        'story.malloynb': '>>>malloy\nimport "base.malloy"\n>>>malloy\n\nrun: nope -> v\n',
    };
    const bad = modelOf(await loaded(broken), 'story.malloynb');
    assert.match(bad.error, /^story\.malloynb:5:6: Reference to undefined object 'nope'/);
    assert.equal(bad.problems[0].line, 4);
});

test('without plan no source is planned', async () => {
    const quiet = await loaded(files, {plan: false});
    assert.deepEqual(modelOf(quiet, 'base.malloy').sources, []);
    assert.equal(modelOf(quiet, 'base.malloy').flagged, true);
});

test('annotated shapes that cannot be stored are dropped by name', async () => {
    const text = `##! experimental.persistence
source: orders is pg.table('shop.orders')
#@ persist name="t.a"
source: cut is orders extend { where: qty > 1 }
#@ persist name="t.b"
source: bare is pg.table('shop.orders')
`;
    const {models} = await loaded({'m.malloy': text});
    const dropped = models[0].dropped.map(d => [d.name, d.source_id, d.type, d.path, d.line]);
    assert.deepEqual(dropped, [
        ['cut', 'cut@mpkg://shop/m.malloy', 'table', 'm.malloy', 3],
        ['bare', 'bare@mpkg://shop/m.malloy', 'table', 'm.malloy', 5],
    ]);
    assert.deepEqual(models[0].sources, []);
});

test('unquoted names are found however they hide', async () => {
    const text = `##! experimental.persistence
source: orders is pg.table('shop.orders')
#@ persist name=plain
source: a is orders -> { group_by: region }
#@ persist name=mart.dotted
source: b is orders -> { group_by: status }
#@ persist
#@ name=second_line
source: c is orders -> { group_by: qty }
#@ persist name='single'
source: d is orders -> { group_by: tags }
`;
    const {models} = await loaded({'m.malloy': text});
    const found = models[0].tag_problems;
    assert.deepEqual(
        found.map(p => [p.line, p.code, p.severity]),
        [
            [2, 'persist-name-unquoted', 'error'],
            [4, 'persist-name-unquoted', 'error'],
            [7, 'persist-name-unquoted', 'error'],
        ]
    );
    found.forEach(p => assert.match(p.message, /persist annotation name must be quoted/));
    assert.equal(sourceOf(models[0], 'd').name_property, 'single');
});

test('a parse error on a persist line is a problem, a doubly quoted name is text', async () => {
    const text = `##! experimental.persistence
source: orders is pg.table('shop.orders')
#@ persist name="a" = =
source: a is orders -> { group_by: region }
#@ persist name="\\"My Tbl\\""
source: b is orders -> { group_by: status }
`;
    const {models} = await loaded({'m.malloy': text});
    assert.deepEqual(
        models[0].tag_problems.map(p => [p.line, p.code]),
        [[2, 'tag-parse-error']]
    );
    assert.match(models[0].tag_problems[0].message, /persist annotation name must be quoted/);
    assert.equal(sourceOf(models[0], 'b').name_property, '"My Tbl"');
});

test('free parameters are named, bound and defaulted ones are not free', async () => {
    const text = `##! experimental { persistence parameters }
source: orders is pg.table('shop.orders') extend { measure: n is count() }
#@ persist name="t.free"
source: free(q::number) is orders -> { group_by: region aggregate: n } extend { where: n > q }
#@ persist name="t.fixed"
source: fixed(q::number is 4) is orders -> { group_by: status aggregate: n } extend { where: n > q }
#@ persist name="t.bound"
source: bound is free(q is 5) -> { group_by: region }
`;
    const {models} = await loaded({'m.malloy': text});
    const free = Object.fromEntries(models[0].sources.map(s => [s.name, s.free_parameters]));
    assert.deepEqual(free, {free: ['q'], fixed: [], bound: []});
});

test('gates are seen on the source, on the file and inside a join', async () => {
    const text = `##! experimental.persistence
##(authorize) "$ROLE = 'admin'"
source: orders is pg.table('shop.orders')
#(access_filter) "region = $REGION"
#@ persist name="t.gated"
source: gated is orders -> { group_by: region }
source: over is orders extend {
  #(authorize) "true"
  join_one: gated on region = gated.region
}
`;
    const {models} = await loaded({'m.malloy': text});
    assert.deepEqual(sourceOf(models[0], 'gated').gates, ['#(access_filter) "region = $REGION"']);
    assert.deepEqual(models[0].locks, [
        `m.malloy:2: ##(authorize) "$ROLE = 'admin'"`,
        'm.malloy:4: #(access_filter) "region = $REGION"',
        'm.malloy:8: #(authorize) "true"',
    ]);
});

test('every broken model is reported with its place, the good ones stay', async () => {
    const bad = await loaded({
        'good.malloy': "source: o is pg.table('shop.orders')",
        'syntax.malloy': 'source: o is pg.table(\n\n  {',
        'table.malloy': "source: o is pg.table('shop.gone')",
        'import.malloy': 'import "nowhere.malloy"',
        'outside.malloy': 'import "file:///etc/passwd"',
        'type.malloy': "source: o is pg.table('shop.orders') extend { measure: m is region.sum() }",
        'notes.txt': 'not a model',
    });
    const error = path => modelOf(bad, path).error;
    assert.equal(bad.models.length, 6);
    assert.equal(error('good.malloy'), '');
    assert.match(error('syntax.malloy'), /^syntax\.malloy:3:/);
    assert.match(error('table.malloy'), /^table\.malloy:1:14: .*shop\.gone.*does not exist/);
    assert.match(error('import.malloy'), /nowhere\.malloy/);
    assert.match(error('outside.malloy'), /no file/);
    assert.match(error('type.malloy'), /^type\.malloy:1:61: /);
    bad.models
        .filter(m => m.error)
        .forEach(m => {
            assert.ok(m.problems.length > 0, m.path);
            assert.doesNotMatch(m.error, /compiler-bug|Internal compiler error/, m.path);
        });
});

test('an unknown connection is a problem that names it', async () => {
    const bad = await loaded(
        {
            'table.malloy': "source: o is werehouse.table('shop.orders')",
            'block.malloy': 'source: o is werehouse.sql("select 1 as top_n")',
            'odd.malloy': "source: o is strange.table('shop.orders')",
        },
        {
            connections: [
                {name: 'pg', dialect: 'postgres', digest: 'd1'},
                {name: 'strange', dialect: 'oracle', digest: 'd'},
            ],
        }
    );
    for (const path of ['table.malloy', 'block.malloy']) {
        const [problem] = modelOf(bad, path).problems;
        assert.match(problem.message, /connection 'werehouse' is not configured/);
        assert.deepEqual([problem.path, problem.line], [path, 0]);
    }
    assert.match(modelOf(bad, 'odd.malloy').error, /dialect 'oracle'/);
});

test('loads that no service should send are refused', async () => {
    const request = {load_id: '', package: 'p', files: []};
    assert.equal((await client.ask('load', request)).error_code, 'bad_request');
    const twice = {load_id: 'x', package: 'p', files: [{path: 'a.malloy'}, {path: 'a.malloy'}]};
    assert.match(
        (await client.ask('load', twice)).error_text,
        /must be relative to the package and differ/
    );
});

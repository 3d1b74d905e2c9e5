'use strict';
// Check and describe, asked of the bundle.
const {test, before, after} = require('node:test');
const assert = require('node:assert/strict');
const {Client, load, modelOf, sourceOf} = require('./client');
const {files, catalog} = require('./shop');

let client;
let reply;
before(async () => {
    client = new Client();
    ({reply} = await load(client, files, catalog));
});
after(() => client.close());

const manifest = name => {
    const {build_id} = sourceOf(modelOf(reply, 'base.malloy'), name);
    return [{build_id, table: `"mart"."${name}"`}];
};

const check = more => client.ask('check', {load_id: 'l1', model: 'base.malloy', ...more});

test('check appends text, shows its SQL, and places its problems', async () => {
    const good = await check({
        source: 'run: fact -> by_region',
        include_sql: true,
        manifest: manifest('fact'),
    });
    assert.deepEqual([good.kind, good.ok], ['checked', true]);
    assert.match(good.sql, /"mart"\."fact"/);
    assert.equal((await check({source: 'run: fact -> by_region'})).sql, '');
    const bad = await check({source: 'run: fact ->\n  nope'});
    assert.equal(bad.ok, false);
    assert.deepEqual([bad.problems[0].line, bad.problems[0].path], [1, '']);
    assert.match(
        (await check({source: 'x', scope: 'world'})).error_text,
        /none of append, file, package/
    );
    assert.equal((await check({source: 'x', model: 'no.malloy'})).error_code, 'not_found');
});

test('check asks for new tables and forgets them', async () => {
    const source = "source: s is pg.table('shop.new') run: s -> { select: word }";
    const needs = await check({source, include_sql: true});
    assert.equal(needs.kind, 'needs');
    assert.deepEqual(
        needs.tables.map(t => [t.connection, t.path]),
        [['pg', 'shop.new']]
    );
    const columns = [{name: 'word', data_type: 'text'}];
    const tables = [{connection: 'pg', path: 'shop.new', columns}];
    const good = await check({source, include_sql: true, tables});
    assert.equal(good.ok, true);
    assert.match(good.sql, /FROM shop\.new/);
    assert.equal((await check({source})).kind, 'needs');
});

test('check in place of a file, alone or with all that import it', async () => {
    const source = "source: orders is pg.table('shop.orders')";
    assert.equal((await check({source, scope: 'file'})).ok, true);
    const whole = await check({source, scope: 'package'});
    assert.equal(whole.ok, false);
    const paths = new Set(whole.problems.map(p => p.path));
    assert.deepEqual([...paths].sort(), ['story.malloynb', 'sub/main.malloy']);
    const query = {load_id: 'l1', model: 'base.malloy', text: 'run: fact -> by_region'};
    const live = await client.ask('query', query);
    assert.match(live.sql, /shop\.orders/);
});

test('a model is described with its sources, views, queries and givens', async () => {
    const {json} = await client.ask('describe_model', {load_id: 'l1', model: 'base.malloy'});
    const body = JSON.parse(json);
    assert.deepEqual(
        [body.modelPath, body.packageName, body.malloyVersion],
        ['base.malloy', 'shop', '0.0.431']
    );
    const fact = body.sources.find(s => s.name === 'fact');
    assert.deepEqual(
        fact.views.map(v => v.name),
        ['by_region']
    );
    assert.ok(fact.annotations.some(a => a.startsWith('#@ persist')));
    assert.deepEqual(
        body.queries.map(q => [q.name, q.sourceName]),
        [['regions', 'fact']]
    );
    assert.deepEqual(
        body.givens.map(g => [g.name, g.type, g.required]),
        [
            ['TENANT', 'string', false],
            ['REQUIRED', 'string', true],
        ]
    );
    assert.ok(JSON.parse(body.modelInfo).entries.some(e => e.name === 'fact'));
    assert.equal(body.sourceInfos.length, body.sources.length);
    const story = JSON.parse(
        (await client.ask('describe_model', {load_id: 'l1', model: 'story.malloynb'})).json
    );
    assert.deepEqual(
        story.notebookCells.map(c => c.type),
        ['markdown', 'code', 'code']
    );
});

'use strict';
// Build ids are what tables are found by: a change of the compiler that moves one of these means
// that every table of every installation is built again. Do not re-pin without saying so in the
// changelog.
const {test, before, after} = require('node:test');
const assert = require('node:assert/strict');
const {Client, load} = require('./client');
const {catalog, orders} = require('./shop');

const BODY = '{ group_by: region aggregate: revenue, n }';
const head = `##! experimental { persistence parameters }
source: orders is pg.table('shop.orders') extend { measure: n is count(), revenue is amount.sum() }
`;
const one = text => head + '#@ persist name="mart.x"\n' + text;

let client;
before(() => (client = new Client()));
after(() => client.close());

// {source name: build id} of a one-file package.
async function ids(text, more = {}, tables = catalog) {
    const {reply} = await load(client, {'m.malloy': text}, tables, more);
    assert.equal(reply.kind, 'loaded', reply.error_text);
    const [model] = reply.models;
    assert.equal(model.error, '');
    return Object.fromEntries(model.sources.map(s => [s.name, s.build_id]));
}

const PINNED = {
    plain: [one(`source: x is orders -> ${BODY}`), 'x'],
    one_aggregate_less: [
        one('source: x is orders -> { group_by: region aggregate: revenue }'),
        'x',
    ],
    aggregates_swapped: [
        one('source: x is orders -> { group_by: region aggregate: n, revenue }'),
        'x',
    ],
    filtered: [one(`source: x is orders extend { where: qty > 3 } -> ${BODY}`), 'x'],
    month: [one('source: x is orders -> { group_by: m is ordered_at.month aggregate: n }'), 'x'],
    nested: [
        one(
            'source: x is orders -> { group_by: region nest: s is { group_by: qty aggregate: n } }'
        ),
        'x',
    ],
    star: [one('source: x is orders -> { select: * }'), 'x'],
    block: [one('source: x is pg.sql("select 1 as top_n")'), 'x'],
    block_spaced: [one('source: x is pg.sql("select 1  as top_n")'), 'x'],
    bound_4: [
        one(`source: p(q::number) is orders -> ${BODY} extend { where: n > q }
#@ persist name="mart.y"
source: x is p(q is 4) -> { group_by: region }`),
        'x',
    ],
    bound_5: [
        one(`source: p(q::number) is orders -> ${BODY} extend { where: n > q }
#@ persist name="mart.y"
source: x is p(q is 5) -> { group_by: region }`),
        'x',
    ],
    chained: [
        one(`source: p is orders -> ${BODY}
#@ persist name="mart.y"
source: x is p -> { group_by: region aggregate: t is revenue.sum() }`),
        'x',
    ],
};

const GOLDEN = {
    plain: '7a9b9004f2c14ed40eab290da67b03ed9c1201a25ff691b3a735faec609a27e3',
    one_aggregate_less: '2b21c557def548b23d970a17e5e2b17f19a229901025b4e8f07f72ac08db8d38',
    aggregates_swapped: '10201d30c4471ecff646f34a215be0b00283a6384f126c4fdf33d7ee502bf463',
    filtered: '2cefe42090310126c0a4c89c8b761707816b56faff9b5598629598561688a986',
    month: 'a6a21e92ef261bd5674fbc54cc4afa7dd8bf66ea6680f59c212ee88fa3d16031',
    nested: '8f923a8443500845eb8d4941df7eba5ac2dd2eb94b6456b0934c8045c4bae63a',
    star: '15b8e60af607196c70e200beb7f919d9700e9ddc6c8734d7c8f6f222f8b3d2ee',
    block: 'ff0a71f8f64ef3bc0d7407eb0d7b8ec654048927512d31e7cdd1109ed12b6069',
    block_spaced: '3064f2642e3a51a6287d3a5b038762c095d22611c74e9775017ef21cb6dcff7b',
    bound_4: '8356520b137f7a4bb77ab390e729fa729bd29cd6a0800b96226a0c03b4da791e',
    bound_5: '08569c36f59f112d1634e572303e4d2a8f3176c29243c5c02fae2c1ac8d9047d',
    chained: 'd5be338c8b111b984e735239fede902d1f24554203ef2cbb4dbc13a65d95dbdf',
};

test('build ids are the pinned ones', async () => {
    const found = {};
    for (const [variant, [text, name]] of Object.entries(PINNED)) {
        found[variant] = (await ids(text))[name];
    }
    assert.deepEqual(found, GOLDEN);
    assert.equal(new Set(Object.values(found)).size, Object.keys(found).length);
});

test('what is not logic leaves the id alone', async () => {
    const same = [
        `// a comment\n${head}#@ persist name="elsewhere.y" refresh=full\n` +
            `-- more\nsource: x is orders -> ${BODY}`,
        one(`source: renamed is orders -> ${BODY}`),
        one(`source: x is orders -> ${BODY} extend { dimension: up is upper(region) }`),
        one(`source: x is orders -> {\n  group_by: region\n  aggregate: revenue, n\n}`),
    ];
    for (const text of same) {
        assert.deepEqual(Object.values(await ids(text)), [GOLDEN.plain], text);
    }
    const other = await ids(PINNED.plain[0], {package: 'other', load_id: 'l2'});
    assert.equal(other.x, GOLDEN.plain);
    const wider = {...catalog, 'shop.orders': {...orders, id: 'bigint', unused: 'text'}};
    assert.equal((await ids(PINNED.plain[0], {}, wider)).x, GOLDEN.plain);
});

test('the connection digest, and a new column under a star, move the id', async () => {
    const moved = {connections: [{name: 'pg', dialect: 'postgres', digest: 'd2'}]};
    assert.notEqual((await ids(PINNED.plain[0], moved)).x, GOLDEN.plain);
    const wider = {...catalog, 'shop.orders': {...orders, unused: 'text'}};
    assert.notEqual((await ids(PINNED.star[0], {}, wider)).x, GOLDEN.star);
});

test('equal bodies, extensions and the free template of a body share its id', async () => {
    const found = await ids(
        one(`source: a is orders -> ${BODY}
source: a_ext is a extend { dimension: up is upper(region) }
#@ persist name="mart.b"
source: b is orders -> ${BODY}
#@ persist name="mart.p"
source: p(q::number) is orders -> ${BODY} extend { where: n > q }`)
    );
    const id = GOLDEN.plain;
    assert.deepEqual(found, {a: id, a_ext: id, b: id, p: id});
});

test('every dialect of the core is planned', async () => {
    const dialects = [
        'postgres',
        'duckdb',
        'standardsql',
        'snowflake',
        'trino',
        'presto',
        'mysql',
        'databricks',
    ];
    const column = {duckdb: 'VARCHAR', standardsql: 'STRING', snowflake: 'TEXT'};
    for (const dialect of dialects) {
        const type = column[dialect] || 'varchar';
        const text = `##! experimental.persistence
#@ persist name="t"
source: x is pg.table('shop.words') -> { group_by: word aggregate: n is count() }`;
        const more = {connections: [{name: 'pg', dialect, digest: 'd1'}]};
        const found = await ids(text, more, {'shop.words': {word: type}});
        assert.match(found.x, /^[0-9a-f]{64}$/, dialect);
    }
});

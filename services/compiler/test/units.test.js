'use strict';
// Pure parts: scanning text, tags, types, paths, notebooks.
const {test} = require('node:test');
const assert = require('node:assert/strict');
const scan = require('../src/scan');
const {fieldsOf, typeText} = require('../src/dialects');
const {Paths} = require('../src/paths');
const {cellsOf, inPlace} = require('../src/notebook');
const {cleanText} = require('../src/problems');

test('a name is bare only as a key of its own that is not quoted', () => {
    const bare = [
        'persist name=x',
        'persist name = mart.x',
        'name=x',
        'persist storage="a" name=x',
    ];
    const fine = [
        'persist name="x"',
        "persist name = 'x'",
        'persist queryMetadata.name=x',
        'persist table_name=x',
        'persist queryMetadata.note="name=x"',
        'persist',
    ];
    bare.forEach(text => assert.ok(scan.hasBareName(text), text));
    fine.forEach(text => assert.ok(!scan.hasBareName(text), text));
});

test('bare names are found on persist lines only, with their line', () => {
    const text = '# name=x\n  #@ persist name=x\n#@ name=y\n#@ -persist\n';
    assert.deepEqual(
        scan.bareNameLines(text).map(l => l.line),
        [1]
    );
});

test('locks are found on sources and on files', () => {
    const text = '##(authorize) "$A = 1"\n#(access_filter) "a = $B"\n# plain\n-- #(authorize) x\n';
    assert.deepEqual(
        scan.lockLines(text).map(l => l.line),
        [0, 1]
    );
});

function typesOf(dialect, types) {
    const columns = types.map((type, i) => ({name: `c${i}`, data_type: type, element_type: ''}));
    return fieldsOf(dialect, columns).map(typeText);
}

test('PostgreSQL types map as information_schema and as format_type spell them', () => {
    const types = [
        'integer',
        'bigint',
        'numeric(12,2)',
        'double precision',
        'character varying(10)',
        'text',
        'boolean',
        'date',
        'timestamp without time zone',
        'timestamp(3) without time zone',
        'timestamp with time zone',
        'timestamp(6) with time zone',
        'uuid',
        'text[]',
        'character varying(10)[]',
    ];
    assert.deepEqual(typesOf('postgres', types), [
        'number',
        'number',
        'number',
        'number',
        'string',
        'string',
        'boolean',
        'date',
        'timestamp',
        'timestamp',
        'timestamptz',
        'timestamptz',
        'sql native',
        'string[]',
        'string[]',
    ]);
    const [array] = fieldsOf('postgres', [
        {name: 'a', data_type: 'ARRAY', element_type: 'integer'},
    ]);
    assert.equal(array.name, 'a');
    assert.equal(typeText(array), 'number[]');
});

test('DuckDB types keep their structs and lists', () => {
    const types = ['STRUCT(a INTEGER, b VARCHAR[])[]', 'DECIMAL(10,2)', 'TIMESTAMP WITH TIME ZONE'];
    assert.deepEqual(typesOf('duckdb', types), [
        '{ a::number, b::string[] }[]',
        'number',
        'timestamptz',
    ]);
});

test('every other dialect maps its common types', () => {
    assert.deepEqual(typesOf('standardsql', ['INT64', 'STRING']), ['number', 'string']);
    assert.deepEqual(typesOf('snowflake', ['NUMBER(38,0)', 'TEXT']), ['number', 'string']);
    assert.deepEqual(typesOf('trino', ['bigint', 'varchar(5)']), ['number', 'string']);
    assert.deepEqual(typesOf('presto', ['bigint', 'varchar(5)']), ['number', 'string']);
    assert.deepEqual(typesOf('mysql', ['int', 'varchar(5)']), ['number', 'string']);
    assert.deepEqual(typesOf('databricks', ['bigint', 'string']), ['number', 'string']);
});

test('source ids cross the border and come back, odd names included', () => {
    const paths = new Paths('my pkg', ['a.malloy', 'sub/grün x.malloy', '50%.malloy']);
    for (const path of ['a.malloy', 'sub/grün x.malloy', '50%.malloy']) {
        const outward = `orders@mpkg://my pkg/${path}`;
        const inward = paths.inward(outward);
        assert.equal(paths.outward(inward), outward);
        assert.equal(paths.path(inward.slice(inward.indexOf('@') + 1)), path);
    }
    assert.equal(paths.inward('orders@mpkg://my pkg/none.malloy'), undefined);
    assert.equal(paths.inward('orders@mpkg://other/a.malloy'), undefined);
    assert.equal(paths.path('internal://query/1'), '');
});

test('a notebook is cut into cells that know their line', () => {
    const cells = cellsOf('-- comment\n>>>markdown\n# hi\n>>>malloy x:1\nrun: a\n>>>sql\nselect 1');
    assert.deepEqual(
        cells.map(c => [c.kind, c.line]),
        [
            ['markdown', 2],
            ['malloy', 4],
            ['sql', 6],
        ]
    );
    assert.equal(cells[1].config, 'x:1');
    assert.equal(inPlace(cells[1]).split('\n')[4], 'run: a');
});

test("the compiler's talk about its own bugs is not passed on", () => {
    const text = 'Internal compiler error (likely a Malloy bug, please file an issue): no queries';
    assert.equal(cleanText(text), 'no queries');
    assert.doesNotMatch(
        cleanText("Given 'A' has no value. To fix: supply it via `.run(..)`"),
        /run/
    );
});

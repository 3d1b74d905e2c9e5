'use strict';
// Queries under a manifest and build SQL, asked of the bundle.
const {test, before, after} = require('node:test');
const assert = require('node:assert/strict');
const {M} = require('../src/malloy');
const {Client, load, modelOf, sourceOf} = require('./client');
const {files, catalog} = require('./shop');

let client;
let reply;
before(async () => {
    client = new Client();
    ({reply} = await load(client, files, catalog));
});
after(() => client.close());

const source = (path, name) => sourceOf(modelOf(reply, path), name);
const id = (name, path = 'base.malloy') => source(path, name).build_id;
const table = name => `"mart"."${name}"`;
const manifest = (...names) => names.map(n => ({build_id: id(n), table: table(n)}));

const ask = more => client.ask('query', {load_id: 'l1', model: 'base.malloy', ...more});

async function sqlOf(more) {
    const answer = await ask(more);
    assert.equal(answer.kind, 'compiled', answer.error_text);
    return answer;
}

async function errorOf(more) {
    const answer = await ask(more);
    assert.equal(answer.kind, 'error', JSON.stringify(more));
    assert.doesNotMatch(answer.error_text, /compiler-bug|Internal compiler error|\bat .*\.js/);
    return answer;
}

test('a query reads the table of its manifest and says which source that was', async () => {
    const text = 'run: fact -> by_region';
    const live = await sqlOf({text});
    assert.match(live.sql, /FROM shop\.orders as base/);
    assert.deepEqual([live.hits, live.misses, live.flagged], [[], [], true]);
    const baked = await sqlOf({text, manifest: manifest('fact', 'top')});
    assert.match(baked.sql, /FROM "mart"\."fact" as base/);
    assert.doesNotMatch(baked.sql, /shop\.orders/);
    assert.deepEqual(baked.hits, [id('fact')]);
    assert.deepEqual(baked.misses, []);
    assert.deepEqual(baked.persist_sources, ['fact@mpkg://shop/base.malloy']);
    assert.deepEqual([baked.connection, baked.dialect], ['pg', 'postgres']);
});

test('a query says its source and the query metadata of that and of the model file', async () => {
    const said = async more => {
        const {source: name, query_metadata: list} = await sqlOf(more);
        return [name, ...list.map(({key, value}) => `${key}=${value}`)];
    };
    const own = ['fact', 'team=x', 'owner=bi'];
    assert.deepEqual(await said({text: 'run: fact -> by_region'}), own);
    assert.deepEqual(await said({query_name: 'regions'}), own);
    assert.deepEqual(await said({source_name: 'fact', query_name: 'by_region'}), own);
    assert.deepEqual(await said({text: 'run: regions -> { select: * }'}), own);
    assert.deepEqual(await said({text: 'run: orders -> by_status'}), ['orders', 'owner=bi']);
    const text = 'run: fact extend { measure: m is count() } -> { aggregate: m }';
    const inline = await said({text});
    assert.deepEqual(inline.slice(1), own.slice(1));
});

test('text, a view by name and a named query give the same SQL', async () => {
    const text = await sqlOf({text: 'run: fact -> by_region', manifest: manifest('fact')});
    const view = await sqlOf({
        source_name: 'fact',
        query_name: 'by_region',
        manifest: manifest('fact'),
    });
    const named = await sqlOf({query_name: 'regions', manifest: manifest('fact')});
    assert.equal(view.sql, text.sql);
    assert.equal(named.sql, text.sql);
});

test('hits come before misses, with sources in the same order', async () => {
    const text = 'run: joined -> { group_by: per_region.region aggregate: n }';
    const miss = await sqlOf({model: 'sub/main.malloy', text, manifest: manifest('fact')});
    assert.deepEqual(miss.hits, [id('fact')]);
    assert.deepEqual(miss.misses, [id('per_region')]);
    assert.deepEqual(miss.persist_sources, [
        'fact@mpkg://shop/base.malloy',
        'per_region@mpkg://shop/base.malloy',
    ]);
    assert.match(miss.sql, /"mart"\."fact"/);
    const hit = await sqlOf({
        model: 'sub/main.malloy',
        text,
        manifest: manifest('fact', 'per_region'),
    });
    assert.match(hit.sql, /LEFT JOIN "mart"\."per_region" AS/);
    assert.deepEqual(hit.misses, []);
});

test('an extension reads the table, an opt-out never asks for it', async () => {
    const bound = {manifest: manifest('fact')};
    const ext = await sqlOf({text: 'run: fact_ext -> { select: loud }', ...bound});
    assert.deepEqual(ext.hits, [id('fact')]);
    const live = await sqlOf({text: 'run: fact_live -> { select: quiet }', ...bound});
    assert.deepEqual([live.hits, live.misses], [[], []]);
});

test('an unflagged model takes no manifest', async () => {
    const quiet = modelOf(reply, 'reaches.malloy').sources[0];
    const bound = {
        manifest: [{build_id: quiet.build_id, table: '"t"'}],
        text: 'run: quiet -> { select: * }',
    };
    const flagless = await sqlOf({model: 'flagless.malloy', ...bound});
    assert.deepEqual([flagless.flagged, flagless.hits], [false, []]);
    const flagged = await sqlOf({model: 'reaches.malloy', ...bound});
    assert.deepEqual([flagged.flagged, flagged.hits], [true, [quiet.build_id]]);
});

test('a notebook is queried through its chain', async () => {
    const text = 'run: fact -> by_region';
    const answer = await sqlOf({model: 'story.malloynb', text, manifest: manifest('fact')});
    assert.deepEqual(answer.persist_sources, ['fact@mpkg://shop/base.malloy']);
});

test("row limits: ours is told from the query's own", async () => {
    const limit = async (text, n) => {
        const a = await sqlOf({text, default_row_limit: n});
        return [a.row_limit, a.limit_added, /LIMIT (\d+)/.exec(a.sql)?.[1]];
    };
    assert.deepEqual(await limit('run: orders -> { select: id }', 100), [100, true, '100']);
    assert.deepEqual(await limit('run: orders -> { select: id limit: 7 }', 100), [7, false, '7']);
    assert.deepEqual(await limit('run: orders -> { select: id }', 0), [0, false, undefined]);
});

test('a given of the extend block is applied on top of the table', async () => {
    const bound = {
        model: 'given.malloy',
        manifest: [{build_id: id('in_extend', 'given.malloy'), table: '"mart"."in_extend"'}],
        text: 'run: in_extend -> { select: * }',
    };
    const answer = await sqlOf({...bound, givens_json: '{"TENANT":"b"}'});
    assert.match(answer.sql, /"mart"\."in_extend"/);
    assert.match(answer.sql, /base\."region"='b'/);
    assert.equal(answer.hits.length, 1);
});

test('a required given inside a persisted query makes the query live and says so', async () => {
    const bound = {
        model: 'given.malloy',
        manifest: [{build_id: id('in_extend', 'given.malloy'), table: '"mart"."in_extend"'}],
        text: 'run: required -> { select: * }',
    };
    const answer = await sqlOf({...bound, givens_json: '{"REQUIRED":"b"}'});
    assert.match(answer.sql, /FROM shop\.orders as base\s+WHERE base\."region"='b'/);
    assert.deepEqual(answer.hits, []);
    const [problem] = answer.problems;
    assert.deepEqual([problem.severity, problem.code], ['warn', 'given_in_persisted_query']);
    const without = await errorOf(bound);
    assert.match(without.error_text, /'REQUIRED' has no value/);
});

test("a table of the same literal never answers for another caller's given", async () => {
    const literal = id('literal', 'given.malloy');
    assert.equal(literal, id('in_query', 'given.malloy'), 'the default is in the identity');
    const answer = await sqlOf({
        model: 'given.malloy',
        manifest: [{build_id: literal, table: '"mart"."literal"'}],
        text: 'run: in_query -> { select: * }',
        givens_json: '{"TENANT":"b"}',
    });
    assert.doesNotMatch(answer.sql, /"mart"/);
    assert.match(answer.sql, /base\."region"='b'/);
    assert.deepEqual(answer.hits, []);
});

test('givens that do not fit are refused', async () => {
    const given = givens_json =>
        errorOf({model: 'given.malloy', text: 'run: orders -> { select: id }', givens_json});
    assert.match((await given('{"NOPE":1}')).error_text, /unknown given 'NOPE'/);
    assert.match((await given('{"TENANT":5}')).error_text, /TENANT: expected string/);
    assert.equal((await given('[1]')).error_code, 'bad_request');
    assert.equal((await given('{')).error_code, 'bad_request');
});

test('caller text reaches nothing beyond the model', async () => {
    const attacks = [
        'run: pg.sql("select 1") -> { select: * }',
        "run: pg.table('shop.orders') -> { select: * }",
        'import "given.malloy" run: orders -> { select: id }',
        "run: orders -> { select: x is pg_read_file!string('/etc/passwd') }",
        'run: orders -> { select: x is sql_string("1") }',
        '##! experimental.persistence\nrun: orders -> { select: id }',
        'given: X :: string is "a" run: orders -> { select: id }',
    ];
    for (const text of attacks) {
        const answer = await errorOf({text});
        const codes = answer.problems.map(p => p.code);
        assert.ok(
            codes.includes('restricted-construct-forbidden'),
            `${text}: ${answer.error_text}`
        );
    }
    const persist =
        '#@ persist name="x"\nsource: x is orders -> { group_by: region } run: x -> { select: * }';
    assert.match((await errorOf({text: persist})).error_text, /cannot declare '#@ persist'/);
    const extended = 'source: x is fact extend { dimension: z is 1 } run: x -> { select: z }';
    assert.deepEqual((await sqlOf({text: extended, manifest: manifest('fact')})).hits, [
        id('fact'),
    ]);
});

test('names are plain names', async () => {
    const names = [
        ['fact', 'nope', /no view 'nope'/],
        ['nope', 'by_region', /no source 'nope'/],
        ['fact` -> { select: * } --', 'by_region', /no source/],
        ['fact', 'by_region` + { limit: 1 } --', /no view/],
        ['fact', 'region', /no view 'region'/],
        ['regions', 'by_region', /no source 'regions'/],
        ['', 'fact', /no query 'fact'/],
        ['', 'nope', /no query 'nope'/],
    ];
    for (const [source_name, query_name, text] of names) {
        const answer = await errorOf({source_name, query_name});
        assert.equal(answer.error_code, 'not_found');
        assert.match(answer.error_text, text);
    }
});

test('errors in query text are clean and placed', async () => {
    const cases = [
        ['source: x is orders', 'compile_error', /no 'run:' statement/],
        ['  ', 'compile_error', /no 'run:' statement/],
        ['run: orders -> {', 'compile_error', /^line 1, column 17: Missing '}'/],
        ['garbage', 'compile_error', /^line 1, column 1: /],
        [
            'run: nope -> v',
            'compile_error',
            /^line 1, column 6: Reference to undefined object 'nope'/,
        ],
        ['run: orders ->\n nope', 'compile_error', /^line 2, column 2: 'nope' is not defined/],
        [
            `run: orders -> { select: x is ${'('.repeat(4000)}1${')'.repeat(4000)} }`,
            'too_complex',
            /nests too deeply/,
        ],
    ];
    for (const [text, code, pattern] of cases) {
        const answer = await errorOf({text});
        assert.equal(answer.error_code, code, text.slice(0, 40));
        assert.match(answer.error_text, pattern);
    }
    const [problem] = (await errorOf({text: 'run: orders -> {\n nope'})).problems;
    assert.equal(problem.path, '');
    assert.equal(problem.line, 1);
});

test('requests that name nothing, too much, or an unknown model are refused', async () => {
    assert.equal((await errorOf({})).error_code, 'bad_request');
    assert.equal((await errorOf({text: 'run: a', query_name: 'b'})).error_code, 'bad_request');
    assert.equal((await errorOf({source_name: 'fact'})).error_code, 'bad_request');
    assert.equal((await errorOf({model: 'no.malloy', text: 'run: a'})).error_code, 'not_found');
    assert.equal((await errorOf({load_id: 'no', text: 'run: a'})).error_code, 'not_loaded');
});

// What Publisher's API does with rows, over the compiler's own objects.
test("head, data and tail are Publisher's full result, byte for byte", async () => {
    const text =
        'run: fact -> { group_by: region, ordered_month, tags aggregate: total ' +
        'nest: by_month is { group_by: ordered_month } limit: 3 }';
    const answer = await sqlOf({text, manifest: manifest('fact')});
    const result = JSON.parse(`${answer.head_json}null${answer.tail_json}`);
    assert.deepEqual(Object.keys(result), [
        'schema',
        'data',
        'connection_name',
        'annotations',
        'model_annotations',
        'sql',
    ]);
    assert.equal(result.sql, answer.sql);
    assert.deepEqual(JSON.parse(answer.schema_json), result.schema.fields);
    const kinds = result.schema.fields.map(f => [f.name, f.type.kind]);
    assert.deepEqual(kinds, [
        ['region', 'string_type'],
        ['ordered_month', 'timestamp_type'],
        ['tags', 'array_type'],
        ['total', 'number_type'],
        ['by_month', 'array_type'],
    ]);
});

test('split results equal what the compiler wraps rows into', async () => {
    const {Package} = require('../src/package');
    const malloy = require('../src/malloy');
    const {splitResult} = require('../src/result');
    const columns = [
        {name: 'region', data_type: 'text'},
        {name: 'amount', data_type: 'numeric'},
    ];
    const pkg = new Package({
        load_id: 'r',
        package: 'p',
        connections: [{name: 'pg', dialect: 'postgres', digest: 'd'}],
        files: [{path: 'm.malloy', contents: "source: o is pg.table('t.o')"}],
        tables: [{connection: 'pg', path: 't.o', columns}],
    });
    await pkg.compile();
    const text = 'run: o -> { group_by: region aggregate: s is amount.sum() }';
    const model = await malloy.compile(pkg.host, {
        text,
        model: pkg.modelOf('m.malloy'),
        restricted: true,
    });
    const {result} = malloy.prepare(malloy.lastQuery(model), {});
    const rows = [
        {region: 'EU', s: 1.5},
        {region: null, s: 2},
    ];
    const wrapped = M.API.util.wrapResult(
        new M.Result(
            {...result._rawQuery, result: rows, totalRows: 2, runStats: {}},
            result._modelDef
        )
    );
    const {head_json, tail_json} = splitResult(result.toStableResult());
    const blank = json => json.replace(/reference_id = \\"[0-9a-f-]+\\"/g, 'reference_id');
    assert.equal(
        blank(head_json + JSON.stringify(wrapped.data) + tail_json),
        blank(JSON.stringify(wrapped))
    );
});

test('build SQL is plain columns and reads the parents that have tables', async () => {
    const build = (name, names, path = 'base.malloy') =>
        client.ask('build_sql', {
            load_id: 'l1',
            model: path,
            source_id: source(path, name).source_id,
            manifest: manifest(...names),
        });
    const alone = await build('per_region', []);
    assert.equal(alone.sql, source('base.malloy', 'per_region').sql);
    assert.deepEqual([alone.hits, alone.misses], [[], [id('fact')]]);
    const chained = await build('per_region', ['fact']);
    assert.match(chained.sql, /FROM "mart"\."fact" as base/);
    assert.doesNotMatch(chained.sql, /row_to_json|shop\.orders/);
    assert.deepEqual([chained.hits, chained.misses], [[id('fact')], []]);
    const block = await build('block', ['fact']);
    assert.equal(
        block.sql,
        'SELECT region, revenue FROM (SELECT * FROM "mart"."fact") from_parent'
    );
    const unknown = {load_id: 'l1', model: 'base.malloy', source_id: 'no@mpkg://shop/base.malloy'};
    assert.equal((await client.ask('build_sql', unknown)).error_code, 'not_found');
    assert.match(
        (await build('required', [], 'given.malloy')).error_text,
        /'REQUIRED' has no value/
    );
});

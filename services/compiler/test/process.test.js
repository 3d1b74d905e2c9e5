'use strict';
// The child as a process: its channel, its end, its confinement, its memory.
const {test} = require('node:test');
const assert = require('node:assert/strict');
const {spawn} = require('node:child_process');
const {Client, PROGRAM, load} = require('./client');
const {files, catalog} = require('./shop');
const {framed} = require('../src/frame');

const BUNDLE = process.env.KILN_COMPILER;

function start(t, flags) {
    const client = new Client(flags);
    t.after(() => client.close());
    return client;
}

test('hello tells versions and leaves the compiler warm', async t => {
    const client = start(t);
    const hello = await client.ask('hello');
    assert.equal(hello.malloy_version, '0.0.431');
    assert.match(hello.service_version, /^\d+\.\d+\.\d+$/);
    assert.equal(hello.dialects.length, 8);
    assert.ok(Number(hello.rss_bytes) > 20e6);
});

test('it answers when only its own file is readable, and ends with its channel', async t => {
    const client = start(t, [
        '--experimental-permission',
        `--allow-fs-read=${BUNDLE}`,
        '--no-warnings',
    ]);
    const {reply} = await load(client, files, catalog);
    assert.equal(reply.kind, 'loaded', reply.error_text);
    assert.deepEqual(await client.close(), {code: 0, signal: null});
});

test('requests sent together are answered in order', async t => {
    const client = start(t);
    const order = [];
    const all = ['hello', 'nonsense', 'hello'].map(async (kind, i) => {
        const answer = await client.ask(kind);
        order.push(i);
        return answer;
    });
    const [, unknown] = await Promise.all(all);
    assert.deepEqual(order, [0, 1, 2]);
    assert.match(unknown.error_text, /unknown kind 'nonsense'/);
});

test('a payload that is no message is an error of that request only', async t => {
    const client = start(t);
    const bad = await client.ask('query', {}, Buffer.from([0xff, 0xff, 0xff]));
    assert.deepEqual([bad.kind, bad.error_code], ['error', 'bad_request']);
    assert.equal((await client.ask('hello')).kind, 'hello');
});

test('a frame that is no Frame ends the child', async t => {
    const client = start(t);
    client.channel.write(framed(Buffer.from([0xff, 0xff, 0xff])));
    assert.equal((await client.exited).code, 1);
});

test('without its channel it says who starts it', async () => {
    const stdio = ['ignore', 'ignore', 'pipe'];
    const child = spawn(process.execPath, PROGRAM, {stdio, env: {}});
    let text = '';
    child.stderr.on('data', chunk => (text += chunk));
    const code = await new Promise(done => child.on('close', done));
    assert.equal(code, 1);
    assert.match(text, /file descriptor 3 is no socket/);
});

test('two children never make the same ids', async t => {
    const idsOf = async client => {
        await load(client, {'m.malloy': "source: o is pg.table('shop.orders')"}, catalog);
        const query = {load_id: 'l1', model: 'm.malloy', text: 'run: o -> { group_by: region }'};
        const {head_json: head, tail_json: tail} = await client.ask('query', query);
        return (head + tail).match(/reference_id = [^ ]+/g);
    };
    const [one, other] = await Promise.all([idsOf(start(t)), idsOf(start(t))]);
    assert.ok(one.length > 0);
    assert.deepEqual(
        one.filter(id => other.includes(id)),
        []
    );
});

test('a load is gone after unload, and a load sent again replaces it', async t => {
    const client = start(t);
    const query = {load_id: 'l1', model: 'm.malloy', text: 'run: o -> { select: id }'};
    await load(client, {'m.malloy': "source: o is pg.table('shop.orders')"}, catalog);
    assert.equal((await client.ask('query', query)).kind, 'compiled');
    await load(client, {'m.malloy': "source: p is pg.table('shop.orders')"}, catalog);
    assert.match((await client.ask('query', query)).error_text, /undefined object 'o'/);
    assert.equal((await client.ask('unload', {load_id: 'l1'})).kind, 'ok');
    assert.equal((await client.ask('query', query)).error_code, 'not_loaded');
});

test('a schema told anew under the same load is believed', async t => {
    const client = start(t);
    const texts = {'m.malloy': "source: o is pg.table('shop.orders')"};
    const query = {load_id: 'l1', model: 'm.malloy', text: 'run: o -> { select: fresh }'};
    await load(client, texts, catalog);
    assert.match((await client.ask('query', query)).error_text, /'fresh' is not defined/);
    await load(client, texts, {'shop.orders': {fresh: 'text'}});
    assert.equal((await client.ask('query', query)).kind, 'compiled');
});

test('unloaded packages give their memory back', async t => {
    const client = start(t, ['--max-old-space-size=256']);
    const views = Array.from(
        {length: 40},
        (_, i) => `view: v${i} is { group_by: region, status aggregate: n }`
    );
    const fields = `measure: n is count() ${views.join('\n')}`;
    const text = `source: o is pg.table('shop.orders') extend { ${fields} }`;
    const rounds = async (from, count) => {
        for (let i = from; i < from + count; i++) {
            const {reply} = await load(client, {'m.malloy': text}, catalog, {load_id: `m${i}`});
            assert.equal(reply.kind, 'loaded');
            await client.ask('unload', {load_id: `m${i}`});
        }
        return Number((await client.ask('hello')).rss_bytes);
    };
    const early = await rounds(0, 10);
    const late = await rounds(10, 60);
    assert.ok(late < early + 64e6, `${early} -> ${late}`);
});

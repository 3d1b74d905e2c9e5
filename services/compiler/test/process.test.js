'use strict';
// The child as a process: its channel, its end, its confinement, its memory.
const {test} = require('node:test');
const assert = require('node:assert/strict');
const {spawn} = require('node:child_process');
const {Client, load} = require('./client');
const {files, catalog} = require('./shop');
const {framed} = require('../src/frame');

const BUNDLE = process.env.KILN_COMPILER;

test('hello tells versions and leaves the compiler warm', async () => {
    const client = new Client();
    const hello = await client.ask('hello');
    assert.equal(hello.malloy_version, '0.0.431');
    assert.match(hello.service_version, /^\d+\.\d+\.\d+$/);
    assert.equal(hello.dialects.length, 8);
    assert.ok(Number(hello.rss_bytes) > 20e6);
    await client.close();
});

test('it answers when only its own file is readable, and ends with its channel', async () => {
    const client = new Client([
        '--experimental-permission',
        `--allow-fs-read=${BUNDLE}`,
        '--no-warnings',
    ]);
    const {reply} = await load(client, files, catalog);
    assert.equal(reply.kind, 'loaded', reply.error_text);
    assert.deepEqual(await client.close(), {code: 0, signal: null});
});

test('requests sent together are answered in order', async () => {
    const client = new Client();
    const order = [];
    const all = ['hello', 'nonsense', 'hello'].map(async (kind, i) => {
        const answer = await client.ask(kind);
        order.push(i);
        return answer;
    });
    const [, unknown] = await Promise.all(all);
    assert.deepEqual(order, [0, 1, 2]);
    assert.match(unknown.error_text, /unknown kind 'nonsense'/);
    await client.close();
});

test('a payload that is no message is an error of that request only', async () => {
    const client = new Client();
    const bad = await client.ask('query', {}, Buffer.from([0xff, 0xff, 0xff]));
    assert.deepEqual([bad.kind, bad.error_code], ['error', 'bad_request']);
    assert.equal((await client.ask('hello')).kind, 'hello');
    await client.close();
});

test('a frame that is no Frame ends the child', async () => {
    const client = new Client();
    client.channel.write(framed(Buffer.from([0xff, 0xff, 0xff])));
    assert.equal((await client.exited).code, 1);
});

test('without its channel it says who starts it', async () => {
    const child = spawn(process.execPath, [BUNDLE], {stdio: ['ignore', 'ignore', 'pipe'], env: {}});
    let text = '';
    child.stderr.on('data', chunk => (text += chunk));
    const code = await new Promise(done => child.on('close', done));
    assert.equal(code, 1);
    assert.match(text, /file descriptor 3 is no socket/);
});

test('a load is gone after unload, and a load sent again replaces it', async () => {
    const client = new Client();
    const query = {load_id: 'l1', model: 'm.malloy', text: 'run: o -> { select: id }'};
    await load(client, {'m.malloy': "source: o is pg.table('shop.orders')"}, catalog);
    assert.equal((await client.ask('query', query)).kind, 'compiled');
    await load(client, {'m.malloy': "source: p is pg.table('shop.orders')"}, catalog);
    assert.match((await client.ask('query', query)).error_text, /undefined object 'o'/);
    assert.equal((await client.ask('unload', {load_id: 'l1'})).kind, 'ok');
    assert.equal((await client.ask('query', query)).error_code, 'not_loaded');
    await client.close();
});

test('unloaded packages give their memory back', async () => {
    const client = new Client(['--max-old-space-size=256']);
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
    await client.close();
});

'use strict';
// A peer of the compiler child for tests: starts the bundle and talks frames on its descriptor 3.
const {spawn} = require('node:child_process');
const protobuf = require('protobufjs');
const {FrameReader, framed} = require('../src/frame');

const BUNDLE = process.env.KILN_COMPILER;
const SNAPSHOT = process.env.KILN_COMPILER_SNAPSHOT; // of the bundle: all tests start from it
const PROGRAM = SNAPSHOT
    ? ['--max-old-space-size=256', '--snapshot-blob', SNAPSHOT, BUNDLE]
    : [BUNDLE];
const ANSWERS = {
    hello: 'HelloReply',
    needs: 'Needs',
    loaded: 'Loaded',
    sql: 'SqlText',
    compiled: 'Compiled',
    checked: 'Checked',
    model: 'ModelInfo',
};
const REQUESTS = {
    load: 'Load',
    build_sql: 'BuildSql',
    query: 'Query',
    check: 'Check',
    describe_model: 'DescribeModel',
    unload: 'Unload',
};

const {root} = protobuf.parse(require('node:fs').readFileSync(process.env.KILN_PROTO, 'utf8'), {
    keepCase: true,
});
const type = name => root.lookupType('kiln.mc.' + name);
const plain = (name, bytes) => type(name).toObject(type(name).decode(bytes), {defaults: true});

class Client {
    constructor(flags = []) {
        this.child = spawn(process.execPath, [...flags, ...PROGRAM], {
            stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
            env: {},
        });
        this.exited = new Promise(done =>
            this.child.on('exit', (code, signal) => done({code, signal}))
        );
        this.channel = this.child.stdio[3];
        this.waiting = new Map();
        this.id = 0;
        const reader = new FrameReader(bytes => this.settle(plain('Frame', bytes)));
        this.channel.on('data', chunk => reader.push(chunk));
        this.channel.on('error', () => {});
        this.exited.then(() => this.waiting.forEach(done => done({kind: 'gone'})));
    }

    settle(frame) {
        const answer = ANSWERS[frame.kind];
        const body = answer ? plain(answer, frame.payload) : {};
        const {kind, error_code, error_text, problems} = frame;
        const error = kind === 'error' ? {error_code, error_text, problems} : {};
        this.waiting.get(frame.id)({...body, ...error, kind});
        this.waiting.delete(frame.id);
    }

    // The answer as a plain object with its `kind`.
    ask(kind, message = {}, payload = undefined) {
        const id = ++this.id;
        const body =
            payload || (REQUESTS[kind] ? type(REQUESTS[kind]).encode(message).finish() : undefined);
        this.channel.write(framed(type('Frame').encode({id, kind, payload: body}).finish()));
        return new Promise(done => this.waiting.set(id, done));
    }

    close() {
        this.channel.end();
        return this.exited;
    }
}

// A Load of `files` ({path: text}) over connection `pg`; every need is answered from `catalog`
// ({table path or part of a SQL block: {column: type} or 'an error'}, later ones first). Answers
// {reply, rounds, request}.
async function load(client, files, catalog, more = {}) {
    const request = {
        load_id: 'l1',
        package: 'shop',
        plan: true,
        connections: [{name: 'pg', dialect: 'postgres', digest: 'd1'}],
        files: Object.entries(files).map(([path, contents]) => ({path, contents})),
        tables: [],
        sqls: [],
        ...more,
    };
    for (let rounds = 1; ; rounds++) {
        const reply = await client.ask('load', request);
        if (reply.kind !== 'needs' || rounds > 10) {
            return {reply, rounds, request};
        }
        reply.tables.forEach(t => request.tables.push({...t, ...schemaOf(catalog, t.path)}));
        reply.sqls.forEach(s => request.sqls.push({...s, ...schemaOf(catalog, s.sql)}));
    }
}

function schemaOf(catalog, key) {
    const found = catalog[key] || Object.entries(catalog).findLast(([k]) => key.includes(k))?.[1];
    if (!found || typeof found === 'string') {
        return {error: found || `relation "${key}" does not exist`};
    }
    const column = ([name, t]) =>
        t.endsWith('[]')
            ? {name, data_type: 'ARRAY', element_type: t.slice(0, -2)}
            : {name, data_type: t};
    return {columns: Object.entries(found).map(column)};
}

const modelOf = (reply, path) => reply.models.find(m => m.path === path);
const sourceOf = (model, name) => model.sources.find(s => s.name === name);

module.exports = {Client, PROGRAM, load, modelOf, sourceOf};

'use strict';
// Uses a whole server on a large package, so that a snapshot taken afterwards has met most of what
// real ones bring. What does not work here fails the build.
const messages = require('./messages');
const {Server} = require('./server');
const {FILES, MODEL, COLUMNS, QUERIES} = require('./warm_model');

const LOAD = 'warm';

// Asks as the services do, over packed frames.
async function ask(server, kind, type, request, replyType) {
    const payload = messages.encode(type, request);
    const frame = messages.decode('Frame', messages.encode('Frame', {id: 1, kind, payload}));
    const reply = messages.decode(
        'Frame',
        messages.encode('Frame', await server.answer(frame, messages))
    );
    if (reply.kind === 'error') {
        throw new Error(`warming: ${kind} ${JSON.stringify(request)}: ${reply.error_text}`);
    }
    const name = reply.kind === 'needs' ? 'Needs' : replyType;
    return {kind: reply.kind, body: messages.decode(name, reply.payload)};
}

function columnsOf(text) {
    const known = Object.keys(COLUMNS).find(part => text.trim().startsWith(part));
    return Object.entries(COLUMNS[known]).map(([name, data_type]) => ({name, data_type}));
}

// In two rounds, as a service does: first without schemas, then with those that were missed.
async function load(server) {
    const request = {
        load_id: LOAD,
        package: LOAD,
        plan: true,
        files: Object.entries(FILES).map(([path, contents]) => ({path, contents})),
        connections: [{name: 'warm', dialect: 'postgres', digest: 'warm'}],
        tables: [],
        sqls: [],
    };
    for (;;) {
        const {kind, body} = await ask(server, 'load', 'Load', request, 'Loaded');
        if (kind === 'loaded') {
            return body.models;
        }
        request.tables.push(...body.tables.map(t => ({...t, columns: columnsOf(t.path)})));
        request.sqls.push(...body.sqls.map(s => ({...s, columns: columnsOf(s.sql)})));
    }
}

async function warmSnapshot() {
    const server = new Server('warm');
    const models = await load(server);
    const broken = models.find(m => m.error);
    if (broken) {
        throw new Error(`warming: ${broken.path}: ${JSON.stringify(broken.problems)}`);
    }
    const {sources} = models.find(m => m.path === MODEL);
    const manifest = sources.map(s => ({build_id: s.build_id, table: `"mart"."${s.name}"`}));
    const about = {load_id: LOAD, model: MODEL, manifest, default_row_limit: 1000};
    for (const {source_id} of sources) {
        await ask(server, 'build_sql', 'BuildSql', {...about, source_id}, 'SqlText');
    }
    for (const query of QUERIES) {
        await ask(server, 'query', 'Query', {...about, ...query}, 'Compiled');
    }
    await ask(server, 'describe_model', 'DescribeModel', about, 'ModelInfo');
    const source = 'run: sales -> { group_by: kind }';
    await ask(server, 'check', 'Check', {...about, source}, 'Checked');
    await ask(server, 'unload', 'Unload', about, 'HelloReply');
}

module.exports = {warmSnapshot};

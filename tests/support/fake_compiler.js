'use strict';
// A compiler child that misbehaves on request. It speaks the frames of proto/compiler.proto, read and
// written by hand. The text of a Query (field 3) is a command; answers are plain text payloads.
const fs = require('fs');
const net = require('net');

const channel = new net.Socket({fd: 3, allowHalfOpen: true});
const loads = new Map(); // load id to package
const log = []; // kinds seen, with load ids
const grown = [];

function varint(bytes, at) {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
        const b = bytes[at++];
        value += (b & 0x7f) * 2 ** shift;
        if (b < 0x80) {
            return [value, at];
        }
    }
}

// Field number to its last value: numbers and byte strings only.
function parse(bytes) {
    const fields = {};
    for (let at = 0; at < bytes.length; ) {
        let tag, value;
        [tag, at] = varint(bytes, at);
        [value, at] = varint(bytes, at);
        if ((tag & 7) === 2) {
            fields[tag >> 3] = bytes.subarray(at, at + value);
            at += value;
        } else {
            fields[tag >> 3] = value;
        }
    }
    return fields;
}

function number(n) {
    const out = [];
    for (; n > 0x7f; n = Math.floor(n / 128)) {
        out.push((n & 0x7f) | 0x80);
    }
    return Buffer.from([...out, n]);
}

function field(no, value) {
    if (typeof value === 'number') {
        return Buffer.concat([number(no << 3), number(value)]);
    }
    const bytes = Buffer.from(value);
    return Buffer.concat([number((no << 3) | 2), number(bytes.length), bytes]);
}

function send(id, kind, payload = '', code = '', text = '') {
    const parts = [field(1, id), field(2, kind), field(3, payload), field(4, code), field(5, text)];
    const frame = Buffer.concat(parts);
    const head = Buffer.alloc(4);
    head.writeUInt32LE(frame.length);
    channel.write(Buffer.concat([head, frame]));
}

const text = bytes => (bytes ? bytes.toString() : '');

function onLoad(id, fields) {
    const name = text(fields[2]);
    if (name === 'lacking') {
        // Needs {tables: {connection, path}}
        send(id, 'needs', field(1, Buffer.concat([field(1, 'pg'), field(2, 'shop.orders')])));
    } else if (name === 'broken') {
        send(id, 'error', '', 'model_failed', 'm.malloy:3: no such thing');
    } else if (name === 'heavy') {
        for (;;);
    } else {
        loads.set(text(fields[1]), name);
        send(id, 'loaded');
    }
}

function connect(id) {
    const socket = net.connect({host: '127.0.0.1', port: 9});
    socket.on('error', e => send(id, 'compiled', e.code));
    socket.on('connect', () => send(id, 'compiled', 'connected'));
}

function attempt(what) {
    try {
        return what();
    } catch (e) {
        return e.code;
    }
}

const COMMANDS = {
    echo: (id, rest) => send(id, 'compiled', rest),
    pid: id => send(id, 'compiled', String(process.pid)),
    log: id => send(id, 'compiled', log.join(' ')),
    env: id => send(id, 'compiled', Object.keys(process.env).sort().join(' ')),
    cwd: id => send(id, 'compiled', process.cwd()),
    flags: id => send(id, 'compiled', process.execArgv.join(' ')),
    read: (id, rest) => send(id, 'compiled', attempt(() => fs.readFileSync(rest, 'utf8'))),
    big: (id, rest) => send(id, 'compiled', 'x'.repeat(Number(rest))),
    fail: (id, rest) => send(id, 'error', '', 'compile', rest),
    lose: id => send(id, 'error', '', 'not_loaded', 'never heard of it'),
    rubbish: () => channel.write(Buffer.alloc(64, 0xff)),
    nonsense: () => channel.write(Buffer.from([3, 0, 0, 0, 0xff, 0xff, 0xff])),
    wrong: id => send(id + 7, 'compiled'),
    twice: id => (send(id, 'compiled', 'one'), send(id, 'compiled', 'two')),
    hang_up: () => channel.end(),
    crash: () => {
        process.stderr.write('TypeError: on purpose\n');
        process.exit(3);
    },
    hang: () => {
        for (;;);
    },
    // Hangs in the child with that pid, answers in every other one.
    hang_in: (id, rest) => {
        while (Number(rest) === process.pid);
        send(id, 'compiled', String(process.pid));
    },
    grow: (id, rest) => {
        grown.push(Buffer.alloc(Number(rest) << 20, 1));
        send(id, 'compiled', String(process.pid));
    },
    connect,
};

function onQuery(id, fields) {
    const load = text(fields[1]);
    if (load && !loads.has(load)) {
        send(id, 'error', '', 'not_loaded', `load '${load}' is not in this compiler`);
        return;
    }
    const [command, ...rest] = text(fields[3]).split(' ');
    COMMANDS[command](id, rest.join(' '));
}

function onFrame(frame) {
    const fields = parse(frame);
    const id = fields[1];
    const kind = text(fields[2]);
    const body = parse(fields[3] || Buffer.alloc(0));
    log.push(kind + (body[1] ? `:${text(body[1])}` : ''));
    if (kind === 'hello') {
        send(id, 'hello', Buffer.concat([field(1, '0'), field(2, 'fake-1')]));
    } else if (kind === 'load') {
        onLoad(id, body);
    } else if (kind === 'unload') {
        loads.delete(text(body[1]));
        send(id, 'ok');
    } else {
        onQuery(id, body);
    }
}

let all = Buffer.alloc(0);
channel.on('data', chunk => {
    all = Buffer.concat([all, chunk]);
    while (all.length >= 4 && all.length >= 4 + all.readUInt32LE(0)) {
        const end = 4 + all.readUInt32LE(0);
        const frame = all.subarray(4, end);
        all = all.subarray(end);
        onFrame(frame);
    }
});
channel.on('end', () => process.exit(0));

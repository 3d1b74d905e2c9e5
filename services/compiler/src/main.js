'use strict';
// The compiler child: requests on file descriptor 3, until its peer closes it.
const net = require('net');
const {FrameReader, framed} = require('./frame');
const messages = require('./messages');
const {Server} = require('./server');

const CHANNEL = 3;
const server = new Server(process.env.KILN_COMPILER_VERSION);
let turn = Promise.resolve();

function die(text) {
    process.stderr.write(`kiln-compiler: ${text}\n`);
    process.exit(1);
}

function openChannel() {
    try {
        return new net.Socket({fd: CHANNEL, allowHalfOpen: true});
    } catch (e) {
        return die(
            `file descriptor ${CHANNEL} is no socket (${e.message}): kiln starts this program`
        );
    }
}

const channel = openChannel();

function onFrame(bytes) {
    let frame;
    try {
        frame = messages.decode('Frame', bytes);
    } catch (e) {
        die(`a frame that is no Frame: ${e.message}`);
    }
    turn = turn
        .then(() => server.answer(frame, messages))
        .then(reply => channel.write(framed(messages.encode('Frame', reply))));
    turn.catch(e => die(e.stack));
}

const reader = new FrameReader(onFrame);
channel.on('data', chunk => {
    try {
        reader.push(chunk);
    } catch (e) {
        die(e.message);
    }
});
channel.on('end', () => turn.finally(() => channel.end(() => process.exit(0))));
channel.on('error', () => process.exit(0));

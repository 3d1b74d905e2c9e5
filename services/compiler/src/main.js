'use strict';
// The compiler child: requests on file descriptor 3, until its peer closes it. It is started from
// this text, or from a snapshot of the engine that had read and warmed it (node --build-snapshot):
// the same program, ready after a tenth of the CPU time.
require('./unique');
const net = require('net');
const {startupSnapshot} = require('v8');
const {FrameReader, framed} = require('./frame');
const messages = require('./messages');
const {Server} = require('./server');
const {warmSnapshot} = require('./warm_snapshot');

const CHANNEL = 3;

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

function serve(isWarm) {
    const server = new Server(process.env.KILN_COMPILER_VERSION, isWarm);
    const channel = openChannel();
    let turn = Promise.resolve();

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
}

if (startupSnapshot.isBuildingSnapshot()) {
    startupSnapshot.setDeserializeMainFunction(() => serve(true));
    warmSnapshot().catch(e => die(e.stack));
} else {
    serve(false);
}

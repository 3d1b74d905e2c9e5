'use strict';
const {test} = require('node:test');
const assert = require('node:assert/strict');
const {FrameReader, framed} = require('../src/frame');

function collect(chunks) {
    const got = [];
    const reader = new FrameReader(bytes => got.push(bytes.toString()));
    chunks.forEach(chunk => reader.push(chunk));
    return got;
}

test('frames arrive whole however the stream is cut', () => {
    const stream = Buffer.concat(['one', '', 'three'].map(text => framed(Buffer.from(text))));
    for (let size = 1; size <= stream.length; size++) {
        const chunks = [];
        for (let at = 0; at < stream.length; at += size) {
            chunks.push(stream.subarray(at, at + size));
        }
        assert.deepEqual(collect(chunks), ['one', '', 'three'], `cut by ${size}`);
    }
});

test('a length over the limit is refused before it is waited for', () => {
    const prefix = Buffer.alloc(4);
    prefix.writeUInt32LE(0xffffffff);
    assert.throws(() => collect([prefix]), /over the limit/);
});

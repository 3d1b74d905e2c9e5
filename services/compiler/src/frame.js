'use strict';
// Frames on a byte stream: uint32 little-endian length, then that many bytes.

const MAX_FRAME = 256 * 1024 * 1024;

// Collects chunks and calls `onFrame` with each whole frame's bytes.
class FrameReader {
    constructor(onFrame) {
        this.onFrame = onFrame;
        this.chunks = [];
        this.size = 0;
        this.wanted = 4;
        this.inBody = false;
    }

    push(chunk) {
        this.chunks.push(chunk);
        this.size += chunk.length;
        while (this.size >= this.wanted) {
            const part = this.take(this.wanted);
            if (this.inBody) {
                this.expect(4, false);
                this.onFrame(part);
            } else {
                this.expect(lengthOf(part), true);
            }
        }
    }

    expect(wanted, inBody) {
        this.wanted = wanted;
        this.inBody = inBody;
    }

    take(count) {
        const all = this.chunks.length === 1 ? this.chunks[0] : Buffer.concat(this.chunks);
        this.chunks = count < all.length ? [all.subarray(count)] : [];
        this.size = all.length - count;
        return all.subarray(0, count);
    }
}

function lengthOf(prefix) {
    const length = prefix.readUInt32LE(0);
    if (length > MAX_FRAME) {
        throw new Error(`a frame of ${length} bytes is over the limit of ${MAX_FRAME}`);
    }
    return length;
}

function framed(bytes) {
    const out = Buffer.allocUnsafe(4 + bytes.length);
    out.writeUInt32LE(bytes.length, 0);
    out.set(bytes, 4);
    return out;
}

module.exports = {FrameReader, framed};

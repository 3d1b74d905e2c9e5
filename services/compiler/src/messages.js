'use strict';
// Messages of proto/compiler.proto, which the build puts into the bundle as JSON.
const protobuf = require('protobufjs/light');
const descriptor = require('kiln:compiler.proto');

const root = protobuf.Root.fromJSON(descriptor);
const types = new Map();

function typeOf(name) {
    if (!types.has(name)) {
        types.set(name, root.lookupType('kiln.mc.' + name));
    }
    return types.get(name);
}

const decode = (name, bytes) => typeOf(name).decode(bytes);
const encode = (name, message) => typeOf(name).encode(message).finish();

module.exports = {decode, encode};

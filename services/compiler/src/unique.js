'use strict';
// Node draws UUIDs from a pool of random bytes. A snapshot must not hold one: every child that
// starts from it would make the same ids. To be required before the compiler, which keeps the
// function.
const crypto = require('crypto');
const {startupSnapshot} = require('v8');

if (startupSnapshot.isBuildingSnapshot()) {
    const {randomUUID} = crypto;
    let options = {disableEntropyCache: true};
    crypto.randomUUID = () => randomUUID(options);
    startupSnapshot.addDeserializeCallback(() => {
        options = undefined;
    });
}

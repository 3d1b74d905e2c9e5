'use strict';
// The '@' tag of sources and the '##' notes of models as flat (key, value) pairs.

const KNOWN = new Set([
    'persist',
    'name',
    'storage',
    'partition',
    'refresh',
    'watermark',
    'merge_key',
    'freshness',
    'freshness.window',
    'freshness.fallback',
    'realization',
    'sharing',
    'schedule',
    'queryMetadata',
    'preaggregate',
    'grain',
]);
const NOTES = /^(materialization|freshness|queryMetadata)(\.|$)/;

function scalar(tag) {
    const eq = tag.getEq();
    if (eq === undefined || eq === null) {
        return undefined;
    }
    if (Array.isArray(eq)) {
        return eq.map(item => scalar(item) ?? '').join(',');
    }
    return eq instanceof Date ? eq.toISOString() : String(eq);
}

// [{key, value}], nested keys joined by '.'; a key without a value has '' and is left out when it
// only holds others.
function flatten(tag, prefix = '') {
    const pairs = [];
    for (const [name, child] of tag.entries()) {
        const key = prefix + name;
        const value = scalar(child);
        if (value !== undefined || !child.hasProperties()) {
            pairs.push({key, value: value ?? ''});
        }
        pairs.push(...flatten(child, key + '.'));
    }
    return pairs;
}

function unknownKeys(pairs) {
    return pairs
        .map(pair => pair.key)
        .filter(key => !KNOWN.has(key) && !key.startsWith('queryMetadata.'));
}

function queryMetadata(pairs) {
    return pairs
        .filter(pair => pair.key.startsWith('queryMetadata.'))
        .map(({key, value}) => ({key: key.slice('queryMetadata.'.length), value}));
}

const modelNotes = tag => flatten(tag).filter(pair => NOTES.test(pair.key));

module.exports = {flatten, unknownKeys, queryMetadata, modelNotes};

'use strict';
// Everything a compiled model mentions, by walking its definition: the only way to see tables and
// annotations inside joins, query pipelines and SQL block segments alike.
const {isLock} = require('./scan');

// {tables: ["connection\x1fpath"], locks: [{text, url, line}]}, each once.
function mentions(definition) {
    const tables = new Set();
    const locks = new Map();
    const seen = new Set();
    const open = [definition];
    while (open.length > 0) {
        const node = open.pop();
        if (seen.has(node)) {
            continue;
        }
        seen.add(node);
        if (node.type === 'table' && typeof node.tablePath === 'string') {
            tables.add(`${node.connection}\x1f${node.tablePath}`);
        }
        if (typeof node.text === 'string' && node.at && isLock(node.text)) {
            const line = node.at.range.start.line;
            locks.set(`${node.at.url}:${line}`, {text: node.text.trim(), url: node.at.url, line});
        }
        for (const child of Array.isArray(node) ? node : Object.values(node)) {
            if (child !== null && typeof child === 'object') {
                open.push(child);
            }
        }
    }
    return {tables: [...tables].sort(), locks: [...locks.values()]};
}

module.exports = {mentions};

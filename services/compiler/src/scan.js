'use strict';
// Reading model text without compiling it: what must be found even where the compiler loses it.

const PERSIST_LINE = /^\s*#@\s+persist\b/;
const LOCK_LINE = /^\s*##?\|?\((authorize|access_filter)\)/;
const BARE_NAME = /(^|[^\w.])name\s*=\s*(?!["'\s])/;

// Quoted parts emptied, so that a `name=` inside a value is not taken for a key.
function emptyQuotes(text) {
    return text.replace(/"(\\.|[^"\\])*"|'(\\.|[^'\\])*'/g, q => q[0] + q[0]);
}

const hasBareName = text => BARE_NAME.test(emptyQuotes(text));
const isLock = text => LOCK_LINE.test(text);

// [{line, text}] of the lines that `test` accepts; line is 0-based.
function linesWhere(contents, test) {
    return contents
        .split(/\r?\n/)
        .map((text, line) => ({text, line}))
        .filter(({text}) => test(text));
}

const bareNameLines = contents =>
    linesWhere(contents, text => PERSIST_LINE.test(text) && hasBareName(text));
const lockLines = contents => linesWhere(contents, isLock);

module.exports = {hasBareName, isLock, bareNameLines, lockLines};

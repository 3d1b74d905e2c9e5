'use strict';
// What went wrong, as a user can read it: the compiler's errors of four classes become one Fault.
const {M} = require('./malloy');

// error_code of a Frame: bad_request, not_loaded, not_found, model_failed, compile_error,
// too_complex, internal. `problems` are Problem messages.
class Fault extends Error {
    constructor(code, text, problems = []) {
        super(text);
        this.code = code;
        this.problems = problems;
    }
}

const CLEAN = [
    [/^Internal compiler error \(likely a Malloy bug[^)]*\):\s*/, ''],
    [/^(internal|compiler)[- ](bug|error)[: ]+/i, ''],
    [/^MalloyTranslator:?\s*/, ''],
    [
        /To fix: supply it via .*$/s,
        "Supply it in the request's givens, or add a default at its declaration.",
    ],
];

function cleanText(text) {
    const first = CLEAN.reduce((t, [pattern, by]) => t.replace(pattern, by), String(text || ''));
    return first.trim() || 'the compiler gave no reason';
}

// A LogMessage (or MalloyCompileError) as a Problem.
function problemOf(log, paths) {
    const range = log.at && log.at.range;
    return {
        severity: log.severity || 'error',
        code: log.code === 'compiler-bug' ? 'internal' : log.code || '',
        message: cleanText(log.message),
        path: log.at ? paths.path(log.at.url) : '',
        line: range ? range.start.line : 0,
        character: range ? range.start.character : 0,
        end_line: range ? range.end.line : 0,
        end_character: range ? range.end.character : 0,
    };
}

function problemsOf(logs, paths) {
    const seen = new Set();
    return logs
        .map(log => problemOf(log, paths))
        .filter(p => {
            const key = JSON.stringify([p.code, p.message, p.path, p.line, p.character]);
            return !seen.has(key) && seen.add(key);
        });
}

// One line of text out of problems: the first error, its place, and how many more there are.
function textOf(problems) {
    const errors = problems.filter(p => p.severity === 'error');
    const first = errors[0] || problems[0];
    if (!first) {
        return 'the compiler gave no reason';
    }
    const place = first.path
        ? `${first.path}:${first.line + 1}:${first.character + 1}: `
        : `line ${first.line + 1}, column ${first.character + 1}: `;
    const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
    return place + first.message + more;
}

const NOT_PLACED = /^(runtime-given|compiler-given)/;

// Any error thrown by the compiler, as a Fault with the code `code`.
function faultOf(error, paths, code = 'compile_error') {
    if (error instanceof Fault) {
        return error;
    }
    if (error instanceof RangeError && /call stack/i.test(error.message)) {
        return new Fault('too_complex', 'the text nests too deeply for the compiler: simplify it');
    }
    if (error instanceof M.MalloyError) {
        const problems = problemsOf(error.problems, paths);
        if (problems.some(p => /Maximum call stack/i.test(p.message))) {
            return new Fault(
                'too_complex',
                'the text nests too deeply for the compiler: simplify it'
            );
        }
        const text = problems.length ? textOf(problems) : cleanText(error.message);
        return new Fault(code, text, problems);
    }
    if (error && typeof error.code === 'string') {
        const problem = problemOf({...error, message: error.message, severity: 'error'}, paths);
        const text = NOT_PLACED.test(error.code) || !error.at ? problem.message : textOf([problem]);
        return new Fault(code, text, [problem]);
    }
    const message = cleanText(error && error.message);
    const problem = {severity: 'error', code: 'compile', message};
    return new Fault(code, message, [problem]);
}

module.exports = {Fault, faultOf, problemsOf, textOf, cleanText};

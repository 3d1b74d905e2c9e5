'use strict';
// A .malloynb file: text in cells that start with `>>>markdown`, `>>>malloy` or `>>>sql`.

const CELL = /^>>>(markdown|malloy|sql)\b(.*)$/;

// [{kind, config, text, line}]; line is the 0-based line of the cell's first line of text.
function cellsOf(contents) {
    const cells = [];
    let cell;
    contents.split(/\r?\n/).forEach((line, number) => {
        const start = CELL.exec(line);
        if (start) {
            cell = {kind: start[1], config: start[2].trim(), lines: [], line: number + 1};
            cells.push(cell);
        } else if (cell) {
            cell.lines.push(line);
        }
    });
    return cells.map(({lines, ...rest}) => ({...rest, text: lines.join('\n')}));
}

// A cell's text moved down to its place in the file, so that positions need no correction.
const inPlace = cell => '\n'.repeat(cell.line) + cell.text;

module.exports = {cellsOf, inPlace};

'use strict';
// Compiles a small model and a query of it, so that the parser's tables and the engine's code are
// hot before the first request.
const {Package} = require('./package');
const {reportOf} = require('./report');
const {compileQuery} = require('./query');

const MODEL = `##! experimental.persistence
source: items is warm.table('shop.items') extend {
  dimension: big is amount > 10
  measure: total is amount.sum(), n is count()
}
#@ persist name="mart.by_kind"
source: by_kind is items -> { group_by: kind, at_month is at.month aggregate: total, n } extend {
  view: top is {
    group_by: kind
    nest: by_month is { group_by: at_month aggregate: s is total.sum() }
  }
}
`;

const TYPES = [
    ['kind', 'text'],
    ['amount', 'numeric'],
    ['at', 'timestamp without time zone'],
];

async function warm() {
    const columns = TYPES.map(([name, type]) => ({name, data_type: type}));
    const pkg = new Package({
        load_id: 'warm',
        package: 'warm',
        files: [{path: 'warm.malloy', contents: MODEL}],
        connections: [{name: 'warm', dialect: 'postgres', digest: 'warm'}],
        tables: [{connection: 'warm', path: 'shop.items', columns}],
    });
    await pkg.compile();
    const {sources} = reportOf(pkg, 'warm.malloy', true);
    const manifest = sources.map(s => ({build_id: s.build_id, table: '"mart"."by_kind"'}));
    const request = {model: 'warm.malloy', manifest, default_row_limit: 1000};
    await compileQuery(pkg, {...request, source_name: 'by_kind', query_name: 'top'});
    const text =
        'run: items -> { where: big group_by: kind aggregate: total order_by: total desc }';
    await compileQuery(pkg, {...request, text});
}

module.exports = {warm};

'use strict';
// Column types as a warehouse's catalog spells them, to Malloy fields; and Malloy types to text.
const {M, mkArrayDef, mkFieldDef} = require('./malloy');

const trino = new M.TrinoDialect();
const DIALECTS = new Map([
    ['postgres', new M.PostgresDialect()],
    ['duckdb', new M.DuckDBDialect()],
    ['standardsql', new M.StandardSQLDialect()],
    ['snowflake', new M.SnowflakeDialect()],
    ['trino', trino],
    ['presto', trino], // not exported by the compiler; its type names are Trino's
    ['mysql', new M.MySQLDialect()],
    ['databricks', new M.DatabricksDialect()],
]);

// `timestamp(3) without time zone` and `character varying(10)[]` come from format_type.
function postgresType(dialect, text) {
    const bare = text.replace(/\(\s*\d+\s*(,\s*-?\d+\s*)?\)/g, '').trim();
    if (bare.endsWith('[]')) {
        return mkArrayDef(postgresType(dialect, bare.replace(/(\[\])+$/, '')), 'array');
    }
    return dialect.sqlTypeToMalloyType(bare);
}

function fieldOf(dialectName, column) {
    const dialect = DIALECTS.get(dialectName);
    const {name, data_type: type, element_type: element} = column;
    if (dialectName === 'duckdb') {
        return mkFieldDef(dialect.parseDuckDBType(type), name);
    }
    const simple = text =>
        dialectName === 'postgres'
            ? postgresType(dialect, text)
            : dialect.sqlTypeToMalloyType(text);
    if (type.toUpperCase() === 'ARRAY' && element) {
        return mkArrayDef(simple(element), name);
    }
    const atom = simple(type);
    return atom.type === 'array' ? mkArrayDef(atom.elementTypeDef, name) : {...atom, name};
}

function fieldsOf(dialectName, columns) {
    return columns.map(column => fieldOf(dialectName, column));
}

// A Malloy type as the language writes it: string, number[], { a::string, b::number }[], ...
function typeText(def) {
    if (def.type === 'record') {
        return recordText(def.fields);
    }
    if (def.type !== 'array') {
        return def.type;
    }
    const element = def.elementTypeDef;
    const inner = element.type === 'record_element' ? recordText(def.fields) : typeText(element);
    return inner + '[]';
}

function recordText(fields) {
    return '{ ' + fields.map(f => `${f.as || f.name}::${typeText(f)}`).join(', ') + ' }';
}

const isAtomic = field => M.isAtomic(field);

module.exports = {DIALECTS, fieldsOf, typeText, isAtomic};

'use strict';
// Stand-ins for warehouse connections: they hold no credentials and answer only from the schemas
// that a Load supplied; what is missing is noted in `needs`.
const {M} = require('./malloy');
const {DIALECTS, fieldsOf} = require('./dialects');

const OPEN = 'schema not supplied yet';

// The warehouse's text, led by what it is about unless it says so itself.
const named = (text, subject, lead) => (text.includes(subject) ? text : `${lead}: ${text}`);
const key = (connection, text) => connection + '\0' + text;

// What a load knows of its warehouses, and what it was asked for and did not know.
class Schemas {
    constructor() {
        this.tables = new Map();
        this.sqls = new Map();
        this.needTables = new Map();
        this.needSqls = new Map();
    }

    add({tables = [], sqls = []}) {
        for (const table of tables) {
            this.tables.set(key(table.connection, table.path), table);
        }
        for (const sql of sqls) {
            this.sqls.set(key(sql.connection, sql.sql), sql);
        }
    }

    // True when `load` tells all that is known here, and in the same way.
    within(load) {
        const told = new Schemas();
        told.add(load);
        const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
        return (
            [...this.tables].every(([k, table]) => same(told.tables.get(k), table)) &&
            [...this.sqls].every(([k, sql]) => same(told.sqls.get(k), sql))
        );
    }

    // A copy that can learn more without the original.
    fork(more) {
        const copy = new Schemas();
        copy.tables = new Map(this.tables);
        copy.sqls = new Map(this.sqls);
        copy.add(more);
        return copy;
    }

    forgetNeeds() {
        this.needTables.clear();
        this.needSqls.clear();
    }

    // {tables, sqls}, each once, in the order of asking; undefined when nothing is missing.
    needs() {
        if (this.needTables.size + this.needSqls.size === 0) {
            return undefined;
        }
        return {tables: [...this.needTables.values()], sqls: [...this.needSqls.values()]};
    }
}

class Stub {
    constructor({name, dialect, digest}, schemas) {
        this.name = name;
        this.dialectName = dialect;
        this.digest = digest;
        this.schemas = schemas;
    }

    getDigest() {
        return this.digest;
    }

    // Keys are the compiler's, values the paths as written in the model.
    async fetchSchemaForTables(tables) {
        const schemas = {};
        const errors = {};
        for (const [asked, path] of Object.entries(tables)) {
            const table = this.table(path);
            if (table.error) {
                errors[asked] = named(table.error, path, `table '${path}' of '${this.name}'`);
                continue;
            }
            try {
                schemas[asked] = {
                    type: 'table',
                    name: path,
                    tablePath: path,
                    connection: this.name,
                    dialect: this.dialectName,
                    fields: fieldsOf(this.dialectName, table.columns),
                };
            } catch (e) {
                errors[asked] = `a column type of '${path}' is not understood: ${e.message}`;
            }
        }
        return {schemas, errors};
    }

    async fetchSchemaForSQLStruct(ref) {
        const known = this.sql(ref.selectStr);
        if (known.error) {
            return {error: named(known.error, this.name, `SQL block of '${this.name}'`)};
        }
        try {
            const fields = fieldsOf(this.dialectName, known.columns);
            const name = M.sqlKey(this.name, ref.selectStr);
            return {
                structDef: {type: 'sql_select', ...ref, dialect: this.dialectName, name, fields},
            };
        } catch (e) {
            return {error: `a column type of this SQL block is not understood: ${e.message}`};
        }
    }

    table(path) {
        const known = this.schemas.tables.get(key(this.name, path));
        if (!known) {
            this.schemas.needTables.set(key(this.name, path), {connection: this.name, path});
        }
        return known || {error: OPEN};
    }

    sql(sql) {
        const known = this.schemas.sqls.get(key(this.name, sql));
        if (!known) {
            this.schemas.needSqls.set(key(this.name, sql), {connection: this.name, sql});
        }
        return known || {error: OPEN};
    }

    // Fields of a SQL block as its warehouse described it, undefined where it was not asked.
    describedSql(sql) {
        const known = this.schemas.sqls.get(key(this.name, sql));
        return known && !known.error ? fieldsOf(this.dialectName, known.columns) : undefined;
    }

    isPool() {
        return false;
    }

    canPersist() {
        return false;
    }

    canStream() {
        return false;
    }

    async runSQL() {
        throw new Error('the compiler child has no warehouse');
    }
}

// A connection that cannot be asked. A lookup that throws would surface as a failed
// import without its text, so it is found, and every question to it is answered with the reason.
class Unknown extends Stub {
    constructor(name, reason, schemas) {
        super({name, dialect: 'postgres', digest: ''}, schemas);
        this.reason = `connection '${name}' ${reason}`;
    }

    table() {
        return {error: this.reason};
    }

    sql() {
        return {error: this.reason};
    }
}

// The compiler's view of all connections of a load.
class Connections {
    constructor(connections, defaultName, schemas) {
        this.list = connections;
        this.defaultName = defaultName;
        this.schemas = schemas;
        const known = connections.filter(c => DIALECTS.has(c.dialect));
        this.stubs = new Map(known.map(c => [c.name, new Stub(c, schemas)]));
        this.digests = Object.fromEntries(known.map(c => [c.name, c.digest]));
    }

    over(schemas) {
        return new Connections(this.list, this.defaultName, schemas);
    }

    async lookupConnection(name) {
        const wanted = name || this.defaultName;
        return this.stubs.get(wanted) || new Unknown(wanted, this.reason(wanted), this.schemas);
    }

    reason(name) {
        const other = this.list.find(c => c.name === name);
        if (other) {
            return `has the dialect '${other.dialect}', which the compiler does not know`;
        }
        return (
            "is not configured: add it to the environment's connections or correct the name in " +
            'the model'
        );
    }
}

module.exports = {Schemas, Connections};

'use strict';
// One load of a package: its files, what is known of its warehouses, its compiled models.
const malloy = require('./malloy');
const {Schemas, Connections} = require('./connection');
const {Paths} = require('./paths');
const {Fault, faultOf, problemsOf} = require('./problems');
const {cellsOf, inPlace} = require('./notebook');

const isNotebook = path => path.endsWith('.malloynb');
const isModel = path => isNotebook(path) || path.endsWith('.malloy');

class Package {
    constructor(load) {
        this.id = load.load_id;
        this.name = load.package;
        this.files = new Map(load.files.map(f => [f.path, f.contents]));
        this.load = load;
        this.ready = false; // nothing is missing any more
        this.identity = identityOf(load);
        this.paths = new Paths(load.package, [...this.files.keys()]);
        this.schemas = new Schemas();
        this.schemas.add(load);
        this.connections = new Connections(load.connections, load.default_connection, this.schemas);
        this.cache = malloy.newCache();
        this.warnings = new Map(); // path -> Map of its problems; the compiler's cache drops them
        this.models = new Map(); // path -> {path, model, imports, error, problems}
        this.plans = new Map(); // path -> plan, made when first asked for
    }

    get digests() {
        return this.connections.digests;
    }

    // What the compiler needs to read files and schemas. The key is constant because a Package is.
    get host() {
        const read = url => {
            const contents = this.files.get(this.paths.path(url.toString()));
            if (contents === undefined) {
                const path = this.paths.path(url.toString()) || url;
                throw new Error(`the package has no file '${path}'`);
            }
            return {contents, invalidationKey: this.id};
        };
        return {
            urlReader: {
                readURL: async url => read(url),
                getInvalidationKey: async url => read(url).invalidationKey,
            },
            connections: this.connections,
            cache: this.cache,
        };
    }

    // True when `load` is this one again, perhaps with more schemas: a further round of needs, or a
    // replay. What is compiled then stays compiled.
    continues(load) {
        return this.identity === identityOf(load) && this.schemas.within(load);
    }

    // Compiles every model; returns what is missing, or undefined when all is answered.
    async compile() {
        this.schemas.forgetNeeds();
        this.plans.clear();
        for (const path of [...this.files.keys()].filter(isModel).sort()) {
            this.models.set(path, await this.compileFile(path));
        }
        return this.schemas.needs();
    }

    async compileFile(path) {
        try {
            const made = isNotebook(path)
                ? await this.compileNotebook(path)
                : await this.compileModel(path);
            const imports = made.imports.map(url => this.paths.path(url));
            return {path, model: made.model, imports, problems: this.keepWarnings(made.logs)};
        } catch (e) {
            const fault = faultOf(e, this.paths, 'model_failed');
            return {path, error: fault.message, problems: fault.problems};
        }
    }

    async compileModel(path) {
        const model = await malloy.compile(this.host, {url: new URL(this.paths.url(path))});
        return {model, logs: model.problems, imports: malloy.directImports(model)};
    }

    // Each cell on top of the one before. SQL cells are not Malloy's and are left out.
    async compileNotebook(path) {
        const importBase = new URL(this.paths.url(path));
        const cells = cellsOf(this.files.get(path)).filter(cell => cell.kind === 'malloy');
        const logs = [];
        const imports = new Set();
        let model;
        for (const cell of cells.length > 0 ? cells : [{line: 0, text: ''}]) {
            const url = new URL(`#${cell.line}`, importBase);
            model = await malloy.compile(this.host, {url, text: inPlace(cell), model, importBase});
            logs.push(...model.problems);
            malloy.directImports(model).forEach(imported => imports.add(imported));
        }
        return {model, logs, imports: [...imports]};
    }

    // Warnings of a compile, also filed under their own files: a model that another one imported
    // first comes out of the cache without them.
    keepWarnings(logs) {
        const problems = problemsOf(logs, this.paths);
        for (const problem of problems) {
            const kept = this.warnings.get(problem.path) || new Map();
            this.warnings.set(problem.path, kept.set(JSON.stringify(problem), problem));
        }
        return problems;
    }

    problemsOf(path) {
        const own = this.models.get(path).problems;
        const all = new Map(own.map(p => [JSON.stringify(p), p]));
        (this.warnings.get(path) || []).forEach((p, key) => all.set(key, p));
        return [...all.values()];
    }

    // The compiled model of `path`; a Fault where there is none.
    modelOf(path) {
        const entry = this.models.get(path);
        if (!entry) {
            throw new Fault('not_found', `package '${this.name}' has no model '${path}'`);
        }
        if (!entry.model) {
            const text = `model '${path}' does not compile: ${entry.error}`;
            throw new Fault('model_failed', text, entry.problems);
        }
        return entry.model;
    }
}

function identityOf(load) {
    const files = load.files.map(f => [f.path, f.contents]);
    const connections = load.connections.map(c => [c.name, c.dialect, c.digest]);
    return JSON.stringify([load.package, files, connections, load.default_connection]);
}

// Refuses what a service should never send.
function checkLoad(load) {
    const bad = text => {
        throw new Fault('bad_request', `load '${load.load_id}': ${text}`);
    };
    if (!load.load_id || !load.package) {
        bad('load_id and package are required');
    }
    const paths = load.files.map(f => f.path);
    if (new Set(paths).size !== paths.length || paths.some(p => !p || p.startsWith('/'))) {
        bad('file paths must be relative to the package and differ');
    }
    if (load.connections.some(c => !c.name)) {
        bad('every connection has a name');
    }
}

module.exports = {Package, checkLoad, isNotebook};

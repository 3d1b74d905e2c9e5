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
        this.identity = identityOf(load);
        this.paths = new Paths(load.package, [...this.files.keys()]);
        this.schemas = new Schemas();
        this.schemas.add(load);
        this.connections = new Connections(load.connections, load.default_connection, this.schemas);
        this.cache = malloy.newCache();
        this.warnings = new Map(); // url -> problems of its own compile; the model cache drops them
        this.models = new Map(); // path -> {path, model, error, problems}
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

    // True when `load` is this load sent again, with more schemas perhaps (a round of needs).
    continues(load) {
        return this.identity === identityOf(load);
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
            const model = isNotebook(path)
                ? await this.compileNotebook(path)
                : await malloy.compile(this.host, {url: new URL(this.paths.url(path))});
            return {path, model, problems: this.keepWarnings(path, model)};
        } catch (e) {
            const fault = faultOf(e, this.paths, 'model_failed');
            return {path, error: fault.message, problems: fault.problems};
        }
    }

    async compileNotebook(path) {
        const importBase = new URL(this.paths.url(path));
        let model;
        const problems = [];
        for (const [index, cell] of cellsOf(this.files.get(path)).entries()) {
            if (cell.kind === 'malloy') {
                const url = new URL(`#${index + 1}`, importBase);
                model = await malloy.compile(this.host, {url, text: inPlace(cell), model, importBase});
                problems.push(...model.problems);
            }
        }
        if (model) {
            return Object.assign(model, {cellProblems: problems});
        }
        return malloy.compile(this.host, {url: new URL('#0', importBase), text: '', importBase});
    }

    // Warnings of a model: its own, and those that were logged while another one imported it.
    keepWarnings(path, model) {
        const problems = problemsOf(model.cellProblems || model.problems, this.paths);
        for (const problem of problems) {
            const kept = this.warnings.get(problem.path) || [];
            this.warnings.set(problem.path, [...kept, problem]);
        }
        return problems;
    }

    problemsOf(path) {
        const own = this.models.get(path).problems;
        const seen = new Set(own.map(p => JSON.stringify(p)));
        return [...own, ...(this.warnings.get(path) || []).filter(p => !seen.has(JSON.stringify(p)))];
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

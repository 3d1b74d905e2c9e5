'use strict';
// One request at a time: a Frame in, a Frame of the same id out. Loads live here until unloaded.
const malloy = require('./malloy');
const {DIALECTS} = require('./dialects');
const {Package, checkLoad} = require('./package');
const {Fault, faultOf} = require('./problems');
const {reportOf} = require('./report');
const {compileQuery, buildSql} = require('./query');
const {check} = require('./check');
const {describeModel} = require('./describe');
const {warm} = require('./warm');

class Server {
    constructor(version, isWarm = false) {
        this.version = version;
        this.warm = isWarm && Promise.resolve();
        this.loads = new Map();
    }

    // Kind to [request message, handler]; a handler answers [kind, message type, message].
    static KINDS = {
        hello: [undefined, 'hello'],
        load: ['Load', 'load'],
        build_sql: ['BuildSql', 'buildSql'],
        query: ['Query', 'query'],
        check: ['Check', 'check'],
        describe_model: ['DescribeModel', 'describeModel'],
        unload: ['Unload', 'unload'],
    };

    async hello() {
        this.warm ||= warm();
        await this.warm;
        return [
            'hello',
            'HelloReply',
            {
                service_version: this.version,
                malloy_version: malloy.version,
                dialects: [...DIALECTS.keys()],
                rss_bytes: process.memoryUsage.rss(),
            },
        ];
    }

    async load(request) {
        checkLoad(request);
        let pkg = this.loads.get(request.load_id);
        if (pkg && pkg.continues(request)) {
            pkg.schemas.add(request);
        } else {
            pkg = new Package(request);
            this.loads.set(request.load_id, pkg);
        }
        const needs = await pkg.compile();
        if (needs) {
            return ['needs', 'Needs', needs];
        }
        pkg.ready = true;
        const models = [...pkg.models.keys()].map(path => reportOf(pkg, path, request.plan));
        return ['loaded', 'Loaded', {models}];
    }

    async buildSql(request) {
        return ['sql', 'SqlText', buildSql(this.loaded(request.load_id), request)];
    }

    async query(request) {
        return ['compiled', 'Compiled', await compileQuery(this.loaded(request.load_id), request)];
    }

    async check(request) {
        const {needs, checked} = await check(this.loaded(request.load_id), request);
        return needs ? ['needs', 'Needs', needs] : ['checked', 'Checked', checked];
    }

    async describeModel(request) {
        const body = describeModel(this.loaded(request.load_id), request.model);
        return ['model', 'ModelInfo', {json: JSON.stringify(body)}];
    }

    async unload(request) {
        this.loads.delete(request.load_id);
        return ['ok'];
    }

    loaded(id) {
        const pkg = this.loads.get(id);
        if (!pkg || !pkg.ready) {
            throw new Fault('not_loaded', `load '${id}' is not in this compiler: send it again`);
        }
        return pkg;
    }

    // Never throws: what goes wrong is a frame of kind "error".
    async answer(frame, messages) {
        try {
            const kind = Object.hasOwn(Server.KINDS, frame.kind) && Server.KINDS[frame.kind];
            if (!kind) {
                throw new Fault('bad_request', `unknown kind '${frame.kind}'`);
            }
            const [type, handler] = kind;
            const request = type && decode(messages, type, frame.payload);
            const [reply, replyType, message] = await this[handler](request);
            const payload = replyType && messages.encode(replyType, message);
            return {id: frame.id, kind: reply, payload};
        } catch (e) {
            return errorFrame(frame.id, e);
        }
    }
}

function decode(messages, type, payload) {
    try {
        return messages.decode(type, payload);
    } catch (e) {
        throw new Fault('bad_request', `payload is not a ${type}: ${e.message}`);
    }
}

const NO_PATHS = {path: () => ''};

function errorFrame(id, error) {
    const fault = faultOf(error, NO_PATHS, 'internal');
    if (fault.code === 'internal') {
        process.stderr.write(`kiln-compiler: ${error.stack}\n`);
    }
    return {
        id,
        kind: 'error',
        error_code: fault.code,
        error_text: fault.message,
        problems: fault.problems,
    };
}

module.exports = {Server};

'use strict';
// node build.js --modules <node_modules> --proto <compiler.proto> --out <file> --version <version>
// Bundles src/ into one minified file; compiler.proto becomes JSON inside of it.
const fs = require('fs');
const path = require('path');
const {createRequire} = require('module');
const {parseArgs} = require('util');

const options = Object.fromEntries(
    ['modules', 'proto', 'out', 'version'].map(name => [name, {type: 'string'}])
);
const {values: args} = parseArgs({options});
const fromModules = createRequire(path.join(path.resolve(args.modules), 'x.js'));
const esbuild = fromModules('esbuild');
const protobuf = fromModules('protobufjs');

const descriptor = {
    name: 'descriptor',
    setup(build) {
        const filter = /^kiln:compiler\.proto$/;
        build.onResolve({filter}, ({path: name}) => ({path: name, namespace: 'kiln'}));
        build.onLoad({filter: /.*/, namespace: 'kiln'}, () => {
            const text = fs.readFileSync(args.proto, 'utf8');
            const {root} = protobuf.parse(text, {keepCase: true});
            return {contents: JSON.stringify(root.toJSON()), loader: 'json'};
        });
    },
};

// The compiler builds its table of SQL functions anew for every text, most of a query's cost, and
// never writes to it (checked by freezing it). Here it is built once. A compiler without this very
// line fails the build.
const functionsOnce = {
    name: 'functions-once',
    setup(build) {
        build.onLoad({filter: /global-name-space\.js$/}, ({path: file}) => {
            const text = fs.readFileSync(file, 'utf8');
            const from = 'this.entries = getDialectFunctions();';
            if (!text.includes(from)) {
                throw new Error(`${file} has changed: look at functionsOnce in build.js again`);
            }
            const once =
                'let known;\nconst knownFunctions = () => (known ||= getDialectFunctions());\n';
            return {contents: once + text.replace(from, 'this.entries = knownFunctions();')};
        });
    },
};

esbuild
    .build({
        entryPoints: [path.join(__dirname, 'src', 'main.js')],
        outfile: args.out,
        bundle: true,
        minify: true,
        platform: 'node',
        target: 'node20',
        legalComments: 'linked',
        nodePaths: [path.resolve(args.modules)],
        define: {'process.env.KILN_COMPILER_VERSION': JSON.stringify(args.version)},
        plugins: [descriptor, functionsOnce],
    })
    .catch(() => process.exit(1));

'use strict';
// Package paths, the URLs that the compiler sees, and source ids.
// Outside: `orders@mpkg://<package>/<path>`, package and path as written. Inside, both are
// percent-encoded as a URL demands; URLs are in source ids and never in build ids.

const SCHEME = 'mpkg://';

class Paths {
    constructor(packageName, paths) {
        this.packageName = packageName;
        this.base = SCHEME + encodeURIComponent(packageName) + '/';
        this.byUrl = new Map();
        this.byPath = new Map();
        for (const path of paths) {
            const escaped = path.replace(/[%?#]/g, encodeURIComponent);
            const url = new URL('./' + escaped, this.base).toString();
            this.byUrl.set(url, path);
            this.byPath.set(path, url);
        }
    }

    url(path) {
        return this.byPath.get(path);
    }

    // The package path of a URL, or '' for a caller's text. A notebook cell's URL has a fragment.
    path(url) {
        const bare = (url || '').split('#')[0];
        const known = this.byUrl.get(bare);
        if (known !== undefined) {
            return known;
        }
        return bare.startsWith(this.base) ? decode(bare.slice(this.base.length)) : '';
    }

    // Compiler's source id to ours.
    outward(sourceId) {
        const at = sourceId.lastIndexOf('@' + SCHEME);
        if (at < 0) {
            return sourceId;
        }
        return this.sourceId(sourceId.slice(0, at), this.path(sourceId.slice(at + 1)));
    }

    // Ours to the compiler's; undefined when it names no file of the package.
    inward(sourceId) {
        const prefix = '@' + SCHEME + this.packageName + '/';
        const at = sourceId.lastIndexOf(prefix);
        const url = at < 0 ? undefined : this.url(sourceId.slice(at + prefix.length));
        return url && sourceId.slice(0, at + 1) + url;
    }

    sourceId(name, path) {
        return `${name}@${SCHEME}${this.packageName}/${path}`;
    }
}

function decode(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

module.exports = {Paths};

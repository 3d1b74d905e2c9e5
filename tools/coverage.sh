#!/usr/bin/env bash
# Line coverage of the pure core/ folders by the unit and sim rings; fails under 95 %.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset coverage >/dev/null
ninja -C build/coverage -j "$(nproc)" --quiet all
find build/coverage -name '*.gcda' -delete
ctest --test-dir build/coverage -L 'unit|sim' -j 2 --output-on-failure >build/coverage/ctest.log || { tail -60 build/coverage/ctest.log; exit 1; }
gcovr -r . --object-directory build/coverage -f '(services|common)/.*/core/.*' --exclude-throw-branches --print-summary --fail-under-line 95 | tee build/coverage/core.txt

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh [all|core|asan|tsan]: sets up, builds and runs the tests.
#
#   all    the release build with every test, then the core alone (the default)
#   core   the core without any framework: its build and its tests
#   asan, tsan   the core's unit and worker tests under sanitizers
#
# Arguments after the first go to ctest: scripts/test.sh all -L unit
# JOBS: how many tests run at a time; one for each processor without it.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
what=${1:-all}
(($# == 0)) || shift
jobs=${JOBS:-$(nproc)}

say() { printf '\n[test] %s\n' "$*" >&2; }

# No test may be read as passed because none was found.
no_tests=error
run_ctest() {
  local folder=$1
  shift
  ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests="$no_tests" "$@"
}

# Only the core: a preset whose tests need neither .venv nor a framework.
core_preset() {
  local preset=$1 folder=$2
  shift 2
  say "$preset: building"
  scripts/setup.sh --core "$preset" "$folder" || return
  say "$preset: testing"
  run_ctest "$folder" "$@"
}

case $what in
  all)
    scripts/setup.sh --all
    # Both, whatever the first says: one run shows all that is wrong.
    failed=0
    # The core has a part of the release's tests, so perhaps none of those that are asked for.
    (($# == 0)) || no_tests=ignore
    core_preset core-only build-core "$@" || failed=1
    no_tests=error
    say "release: testing"
    run_ctest build "$@" || failed=1
    exit "$failed"
    ;;
  core) core_preset core-only build-core "$@" ;;
  asan) core_preset asan build-asan -L 'unit|worker' "$@" ;;
  tsan) core_preset tsan build-tsan -L 'unit|worker' "$@" ;;
  *) echo "unknown: $what; see the top of scripts/test.sh" >&2; exit 2 ;;
esac

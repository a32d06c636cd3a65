#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench.sh [NAME...]: the figures of BENCHMARKS.md, into bench-out/.
#
#   compile    what the public headers and the files of the core cost to compile
#   figures    whole commands: start-up, first output, the harness, the choice (bench/figures.py)
#   NAME       the program bench_NAME of bench/
# Without a name: all.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

source scripts/ccache.sh
scripts/setup.sh
# In the release build: benchmarks measure what users run.
cmake --preset release -DHASTEN_BENCH=ON > .deps/logs/configure-bench.log ||
  { cat .deps/logs/configure-bench.log >&2; exit 1; }
cmake --build build >&2
mkdir -p bench-out

if (($# == 0)); then
  set -- compile figures
  for source in bench/*_bench.cc; do
    [[ -e $source ]] || continue
    name=${source##*/}
    set -- "$@" "${name%_bench.cc}"
  done
fi
for name in "$@"; do
  printf '[bench] %s\n' "$name" >&2
  if [[ $name == compile ]]; then
    .venv/bin/python tools/check_compile_time.py --core build | tee bench-out/compile.txt
  elif [[ $name == figures ]]; then
    .venv/bin/python bench/figures.py | tee bench-out/figures.txt
  else
    "build/bench/bench_$name" --benchmark_enable_random_interleaving=true \
      --benchmark_repetitions=15 --benchmark_report_aggregates_only=true \
      --benchmark_out="bench-out/$name.json" --benchmark_out_format=json
  fi
done

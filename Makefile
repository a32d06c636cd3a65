# SPDX-License-Identifier: Apache-2.0
# The two that matter: `make demo` and `make test`. Paths stay relative: make splits on spaces.
.DEFAULT_GOAL := help
.PHONY: help setup build demo test core asan tsan bench install clean distclean

# Of builds and tests at a time: make test JOBS=2
export JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

help: ## show this
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 18

setup: ## Debian packages, .venv with pinned wheels, headers, and the command build/hasten
	@scripts/setup.sh

build: setup ## the same

demo: setup ## tune three real pretrained models with every CPU backend, and run the results
	@.venv/bin/python scripts/demo.py

test: ## every test: the release build, the core alone, the layers
	@scripts/test.sh

core: ## build and test the core with no framework installed
	@scripts/test.sh core

asan: ## the core's tests under the address and undefined-behaviour sanitizers
	@scripts/test.sh asan

tsan: ## the core's tests under the thread sanitizer
	@scripts/test.sh tsan

bench: ## the figures of BENCHMARKS.md
	@scripts/bench.sh

install: setup ## install the command, the library and the plugins under PREFIX
	@cmake --install build --prefix "$(PREFIX)"

clean: ## remove the builds and what tests and demo wrote
	rm -rf build build-core build-asan build-tsan build-dev demo-out bench-out tests/models/out

distclean: clean ## also .venv and .deps
	rm -rf .venv .deps

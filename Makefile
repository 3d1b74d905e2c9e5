# Thin: every target is a command you could type yourself.
BUILD ?= build
JOBS ?= $(shell nproc)
export PATH := $(CURDIR)/$(BUILD)/tools/bin:$(PATH)

.PHONY: build setup demo test bench lint fuzz docs asan coverage clean

setup:
	@deploy/setup.sh build stores node

build: setup
	@cmake --preset release >/dev/null
	@ninja -C $(BUILD) -j $(JOBS) --quiet all

demo: build
	@deploy/setup.sh demo data
	@examples/flights/demo.sh

test: build
	@deploy/setup.sh test bench demo data
	@tools/test.sh

lint: setup
	@deploy/setup.sh test
	@tools/lint.sh

asan: setup
	@deploy/setup.sh test bench demo data
	@cmake --preset asan >/dev/null
	@ninja -C build/asan -j $(JOBS) --quiet all
	@tools/test.sh --asan $(ASAN_ARGS)

coverage: setup
	@deploy/setup.sh test
	@tools/coverage.sh

bench: build
	@deploy/setup.sh test bench demo data
	@tests/bench/run.sh

fuzz: setup
	@tools/fuzz.sh

docs: build
	@tools/docs.sh

clean:
	@rm -rf build

# What there is to do here. `make setup` is part of the others; it takes a second when
# there is nothing to install.

BIN := .venv/bin
# What the build of the Python module says too, so that both share what they compile.
CARGO := PYO3_PYTHON=$(CURDIR)/.venv/bin/python cargo
PYTHON_CODE := src tests $(wildcard bench)

# The programs that we start bring their own parallelism: an outer make's job server and
# variables are none of their business.
unexport MAKEFLAGS MFLAGS MAKELEVEL

help:
	@echo 'make setup   install what is missing (system packages as root; Python into .venv),'
	@echo '             and compile the profile engine if it changed'
	@echo 'make demo    optimise, boot and measure a kernel by examples/quickstart.g4'
	@echo 'make test    lint, unit tests and boots of real kernels'
	@echo '             (make test-all: arm64 kernels and a real adbd as well)'
	@echo 'make lint    style and types'
	@echo 'make bench   every benchmark under bench/'
	@echo 'make bench-algorithms'
	@echo '             what every algorithm brings, side by side: hours'
	@echo 'make bench-verdicts'
	@echo '             how often verdicts of evaluations are false, and what they find: 15 minutes'
	@echo 'make bench-leave-one-out'
	@echo '             what a profile does for cases that it was not trained on: hours'
	@echo 'make bench-suites'
	@echo '             every suite, for kernels that are trained by kbench alone: hours'
	@echo 'make bench-model'
	@echo '             the emulated PMU against this machine'
	@echo 'make check-report'
	@echo '             the golden report, or REPORT=DIR, in a browser: width, accessibility, screenshots'
	@echo 'make fuzz    every parser on made-up input, FUZZ_SECONDS each (600)'
	@echo 'make lock    write requirements.lock anew from pyproject.toml'
	@echo 'make clean   remove what was built here'

setup:
	@tools/setup

demo: setup
	$(BIN)/mepof run examples/quickstart.g4 --out out/demo

PYTEST_SELECTION := -m 'not arm64 and not adbd'

test: export MEPOF_SETUP_TESTS := 1
test: lint
	$(CARGO) test --quiet --locked --workspace
	$(BIN)/python -m pytest $(PYTEST_SELECTION)

# With everything built anew, arm64's three kernels take as long again as the rest.
test-all: PYTEST_SELECTION :=
test-all: test

lint: setup
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/mypy --strict $(PYTHON_CODE)
	$(CARGO) fmt --check
	$(CARGO) clippy --quiet --locked --workspace --all-targets -- -D warnings

# These build a dozen kernels each.
HOURS := bench/algorithms.py bench/leave_one_out.py bench/suites.py
BENCHMARKS := $(filter-out $(HOURS),$(sort $(wildcard bench/*.py)))

# What these compare with, as LLVM's BOLT.
bench bench-model: export MEPOF_SETUP_TESTS := 1

bench: setup
	@echo 'benchmarks: $(or $(BENCHMARKS),none under bench/)'
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python $$script; done

bench-algorithms: setup
	$(BIN)/python bench/algorithms.py

bench-verdicts: setup
	$(BIN)/python bench/verdicts.py

bench-leave-one-out: setup
	$(BIN)/python bench/leave_one_out.py

bench-suites: setup
	$(BIN)/python bench/suites.py

bench-model: setup
	$(BIN)/python bench/model.py

# Needs Chromium and npm; the accessibility checker is fetched into build/. PICTURE=FILE makes the
# picture that the documentation shows.
AXE := build/axe-core-4.14.1
REPORT ?= tests/unit/report/golden

check-report: setup $(AXE)
	PYTHONPATH=tests $(BIN)/python -m browser.check_report $(REPORT) \
	    --axe $(AXE)/node_modules/axe-core/axe.min.js --out out/check-report \
	    $(if $(PICTURE),--picture $(PICTURE))

$(AXE):
	npm install --silent --no-save --no-package-lock --prefix $@.part axe-core@4.14.1
	mv $@.part $@

# CI takes five seconds each.
FUZZ_SECONDS ?= 600

fuzz:
	fuzz/run $(FUZZ_SECONDS)

# Pins that are there already stay; remove requirements.lock first to get the newest ones.
lock:
	python3 -m venv build/lock
	build/lock/bin/python -m pip install --quiet pip-tools
	CUSTOM_COMPILE_COMMAND='make lock' build/lock/bin/pip-compile --quiet --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras \
	    --allow-unsafe --extra dev --build-deps-for editable -o requirements.lock pyproject.toml

REMOVED := out/demo build target .mypy_cache .pytest_cache .ruff_cache .hypothesis

clean:
	@echo 'removing: $(REMOVED) and __pycache__'
	@rm -rf $(REMOVED)
	@find src tests $(wildcard bench) -name __pycache__ -prune -exec rm -rf {} +
	@echo "kept: .venv, the rest of out/, and the store in $${MEPOF_STORE:-~/.cache/mepof}"

.PHONY: help setup demo test test-all lint bench bench-algorithms bench-leave-one-out bench-model \
	bench-suites bench-verdicts check-report fuzz lock clean

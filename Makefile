# Entry points of the project. Most targets run `make setup` first; it takes a second when nothing
# is missing.

BIN := .venv/bin
# The same variable as in the build of the Python module, so that both share compiled crates.
CARGO := PYO3_PYTHON=$(CURDIR)/.venv/bin/python cargo
PYTHON_CODE := src tests $(wildcard bench) examples/plugin

# The programs that we start have their own parallelism and must not see an outer make's job server
# and variables.
unexport MAKEFLAGS MFLAGS MAKELEVEL

help:
	@echo 'make setup   install what is missing: system packages as root, Python into .venv;'
	@echo '             compile the profile engine if it changed'
	@echo 'make demo    optimise, boot and measure a kernel with examples/quickstart.g4'
	@echo 'make test    lint, unit tests and boots of real kernels'
	@echo 'make test-all'
	@echo '             the same, with kernels for arm64, by GCC, of two rounds and of a plug-in,'
	@echo '             kselftests, KUnit, a real adbd, BOLT and an older Clang'
	@echo 'make lint    style and types'
	@echo 'make test-matrix'
	@echo '             optimise kernels of several releases by several compilers: many hours; it'
	@echo '             continues where it stopped'
	@echo 'make bench   run every benchmark under bench/ that takes less than hours'
	@echo 'make bench-algorithms'
	@echo '             compare what every algorithm gains: hours'
	@echo 'make bench-by-hand'
	@echo '             optimise a kernel by hand and by mepof, five times: hours'
	@echo 'make bench-chaos'
	@echo '             run steps on a cluster while 200 faults occur: a quarter of an hour'
	@echo 'make bench-cluster'
	@echo '             measure two kernels on 1, 2 and 4 workers: half an hour'
	@echo 'make bench-debian'
	@echo '             optimise the kernel that Debian ships for the cloud: two hours'
	@echo 'make bench-farm'
	@echo '             simulate a farm, and compare the simulation with workers here: minutes'
	@echo 'make bench-fleet'
	@echo '             merge the profiles of a fleet beside llvm-profdata: an hour'
	@echo 'make bench-general'
	@echo '             count what general covers of the suites: one kernel and half an hour'
	@echo 'make bench-leave-one-out'
	@echo '             measure what a profile does for untrained cases: hours'
	@echo 'make bench-loop'
	@echo '             profile a kernel that uses its profile, five times: hours'
	@echo 'make bench-native'
	@echo '             time kernel code natively, with and without a profile: 45 minutes'
	@echo 'make bench-overlap'
	@echo '             count how similar each case is to the training: one kernel, an hour'
	@echo 'make bench-phone-emulated'
	@echo '             start a phone in the emulator with each of its faults: an hour'
	@echo 'make bench-phone-faults'
	@echo '             begin each fault of a phone with each step of a program: 15 minutes'
	@echo 'make bench-phone-kills'
	@echo '             kill 200 runs that use a phone, after one of examples/phone.g4: hours'
	@echo 'make bench-published'
	@echo '             repeat the comparisons that others have published: hours'
	@echo 'make bench-selective'
	@echo '             measure what selective instrumentation keeps of the gain: an hour; of pgo,'
	@echo '             or with PARTS=gcc-pgo of that'
	@echo 'make bench-serve'
	@echo '             measure the page with 500 runs: a minute'
	@echo 'make bench-suites'
	@echo '             run every suite on kernels trained by general alone: hours'
	@echo 'make bench-suites-own'
	@echo '             the same, trained by the suites themselves: hours'
	@echo 'make bench-time'
	@echo '             measure how long runs take against one kernel build: hours'
	@echo 'make bench-verdicts'
	@echo '             measure how often verdicts are false, and what they detect: 15 minutes'
	@echo 'make bench-model'
	@echo '             compare the emulated PMU with this machine'
	@echo 'make check-report'
	@echo '             check the golden report, or REPORT=DIR, in a browser: width, accessibility,'
	@echo '             screenshots'
	@echo 'make check-serve'
	@echo '             check the page of mepof serve in a browser: every view, live updates, keyboard'
	@echo 'make scan-serve'
	@echo '             scan the page of mepof serve for weaknesses: minutes'
	@echo 'make fuzz    run every parser on generated input, FUZZ_SECONDS each (600)'
	@echo 'make fuzz-bootimg'
	@echo '             read ten million mutated boot images: half an hour'
	@echo 'make lock    regenerate requirements.lock from pyproject.toml'
	@echo 'make clean   remove what was built here'

setup:
	@tools/setup

demo: setup
	$(BIN)/mepof run examples/quickstart.g4 --out out/demo

PYTEST_SELECTION := -m 'not (arm64 or adbd or gate or gcc or rounds or examples or patient)'

test: export MEPOF_SETUP_TESTS := 1
test: setup
	tools/run-tests $(PYTEST_SELECTION)

# With an empty store, the kernels for arm64, by GCC, of two rounds and of the examples take longer
# than everything else.
test-all: PYTEST_SELECTION :=
test-all: test-tools test

# Of the profile engine, beside BOLT and an older Clang.
test-tools: export MEPOF_SETUP_TESTS := 1
test-tools: setup
	$(CARGO) test --quiet --locked -p mepof-layout --test toolchain -- --ignored

# CELLS="5.10 pgo" chooses those with these words.
test-matrix: setup
	$(BIN)/python bench/matrix.py $(CELLS)

lint: setup
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/mypy --strict $(PYTHON_CODE)
	$(CARGO) fmt --check
	$(CARGO) clippy --quiet --locked --workspace --all-targets -- -D warnings

# These build kernels: a dozen each, or one.
HOURS := bench/algorithms.py bench/by_hand.py bench/compilers.py bench/configurations.py \
	bench/debian.py bench/general.py bench/leave_one_out.py bench/loop.py bench/matrix.py \
	bench/native_cycles.py bench/overlap.py bench/published.py bench/run_time.py \
	bench/selective.py bench/source_packages.py bench/suites.py bench/transfer.py
# These take as long on a busy machine.
HOURS += bench/chaos.py bench/cluster.py bench/farm.py bench/fleet.py
# These play phones for a quarter of an hour, and for hours.
HOURS += bench/phone_emulated.py bench/phone_faults.py bench/phone_kills.py
BENCHMARKS := $(filter-out $(HOURS),$(sort $(wildcard bench/*.py)))

# What these compare with, such as LLVM's BOLT.
bench bench-model: export MEPOF_SETUP_TESTS := 1

# Played phones are those of the tests.
bench bench-phone-emulated bench-phone-faults bench-phone-kills: export PYTHONPATH := tests
bench-chaos: export PYTHONPATH := tests/unit

bench: setup
	@echo 'benchmarks: $(or $(BENCHMARKS),none under bench/)'
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python $$script; done

ONE_SCRIPT := algorithms by-hand chaos cluster debian farm fleet general leave-one-out loop \
	native overlap phone-emulated phone-faults phone-kills published selective serve suites time \
	transfer verdicts

# PARTS="sampled options emulated" runs these.
bench-native: SCRIPT := native_cycles
bench-time: SCRIPT := run_time

.PHONY: $(ONE_SCRIPT:%=bench-%)
$(ONE_SCRIPT:%=bench-%): bench-%: setup
	$(BIN)/python bench/$(or $(SCRIPT),$(subst -,_,$*)).py $(PARTS)

bench-suites-own: setup
	$(BIN)/python bench/suites.py --train own

bench-model: setup
	$(BIN)/python bench/model.py
	$(BIN)/python bench/model.py --sources bench/model_debian --out docs/benchmarks/model-test

# Fetch the accessibility checker into build/. PICTURE=FILE writes the picture that the documentation
# shows.
check-report check-serve: export MEPOF_SETUP_BROWSER := 1
AXE := build/axe-core-4.14.1
REPORT ?= tests/unit/report/golden

check-report: setup $(AXE)
	PYTHONPATH=tests $(BIN)/python -m browser.check_report $(REPORT) \
	    --axe $(AXE)/node_modules/axe-core/axe.min.js --out out/check-report \
	    $(if $(PICTURE),--picture $(PICTURE))

check-serve: setup $(AXE)
	PYTHONPATH=tests:tests/unit $(BIN)/python -m browser.check_serve \
	    --axe $(AXE)/node_modules/axe-core/axe.min.js --out out/check-serve \
	    $(if $(PICTURE),--picture $(PICTURE))

# Fetches the scanner into build/.
WAPITI := build/wapiti-3.2.3

scan-serve: setup $(WAPITI)/bin/wapiti
	PYTHONPATH=tests:tests/unit $(BIN)/python -m browser.scan_serve \
	    --wapiti $(WAPITI)/bin/wapiti --out out/scan-serve

$(WAPITI)/bin/wapiti:
	python3 -m venv --clear $(WAPITI)
	$(WAPITI)/bin/python -m pip install --quiet --disable-pip-version-check wapiti3==3.2.3

$(AXE):
	npm install --silent --no-save --no-package-lock --prefix $@.part axe-core@4.14.1
	mv $@.part $@

# CI runs each for five seconds.
FUZZ_SECONDS ?= 600

fuzz:
	fuzz/run $(FUZZ_SECONDS)

# Half an hour on an idle core; it continues where it stopped. JOBS=N uses so many.
fuzz-bootimg: setup
	@mkdir -p build/fuzz
	$(BIN)/python fuzz/bootimg.py 86400 --images 10000000 --seed 22 --jobs $(or $(JOBS),1) \
	    --resume build/fuzz/bootimg.jsonl

# Existing pins stay; remove requirements.lock first to get the newest ones.
lock:
	python3 -m venv build/lock
	build/lock/bin/python -m pip install --quiet pip-tools
	CUSTOM_COMPILE_COMMAND='make lock' build/lock/bin/pip-compile --quiet --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras \
	    --allow-unsafe --extra cluster --extra dev --extra remote --extra web \
	    --build-deps-for editable -o requirements.lock pyproject.toml

REMOVED := out/demo build target .mypy_cache .pytest_cache .ruff_cache .hypothesis

clean:
	@echo 'removing: $(REMOVED) and __pycache__'
	@rm -rf $(REMOVED)
	@find src tests $(wildcard bench) -name __pycache__ -prune -exec rm -rf {} +
	@echo "kept: .venv, the rest of out/, and the store in $${MEPOF_STORE:-~/.cache/mepof}"

.PHONY: help setup demo test test-all test-matrix test-tools lint bench bench-model \
	bench-suites-own check-report check-serve scan-serve fuzz fuzz-bootimg lock clean

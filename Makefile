# Two commands do everything: `make demo` and `make test`. The virtual environment is in .venv.

PYTHON ?= python3
BIN := .venv/bin

# Tests start hundreds of processes, each of which would compile the packages again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-xco demo-gcc demo-zovn core shield prepared packages guests check test test-xen test-kernels test-zovn lint format coverage mutants bench bench-quick bench-xco evaluation evaluation-xen deb man notebooks lock clean

demo: .venv/.demo shield
	$(BIN)/python -m benchmarks.demo.xtc
	$(BIN)/python -m benchmarks.demo.policer

# Under two minutes, as root: five senders to one receiver without coordination, and with it.
demo-xco: .venv/.demo core
	$(BIN)/python -m benchmarks.demo.xco

# A minute, as root: a TCP flow beside UDP floods, without control, by rates and by marks.
demo-gcc: .venv/.demo core
	$(BIN)/python -m benchmarks.demo.gcc

# A minute, as root, on Linux 6.16: 32 workers answer one aggregator, through a lossy and a lossless switch.
demo-zovn: .venv/.demo core
	$(BIN)/python -m benchmarks.demo.zovn

# The compiled parts of xco and zovn, if there is a compiler; else it reports what is missing.
core:
	sh scripts/setup-xco.sh
	sh scripts/setup-zovn.sh

# The BPF program of shields and limits, if there is clang; else there are no shields.
shield:
	sh scripts/setup-shield.sh

# Missing system packages for tests, as root; else it names them, and their tests are skipped.
prepared: packages guests build/collected

# Compiles all test modules once, which each of pytest's workers would do else.
build/collected: .venv/.ready $(shell find tests -name "*.py")
	mkdir -p build
	$(BIN)/python -m pytest --collect-only -qq >$@.log || { cat $@.log; exit 1; }
	mv $@.log $@

packages:
	sh scripts/setup-tests.sh
	sh scripts/setup-xco.sh
	sh scripts/setup-zovn.sh
	sh scripts/setup-shield.sh

guests: .venv/.ready packages
	sh scripts/setup-libvirt.sh

# Unit and property tests in a minute and a half: no root, no packets, no other project's programs.
check: .venv/.ready
	HYPOTHESIS_PROFILE=check $(BIN)/python -m pytest -n 3 --dist loadfile -p no:schemathesis \
		-m "not xen and not external" tests/unit tests/property

# All tests except those in emulation. TESTS="--phase rates" runs those that check rates and times.
test: .venv/.ready prepared
	$(BIN)/python -m scripts.phases $(TESTS)

# Boots Xen in emulation: a quarter of an hour from scratch, half of that with a cached image.
test-xen: .venv/.ready shield
	sh tests/system/xen/requirements.sh
	$(BIN)/python -m pytest -m xen tests/system

# Boots Debian's kernel in emulation, and KERNELS="VMLINUZ ..." too: under half a minute each.
test-kernels: .venv/.ready shield
	sh tests/system/xen/requirements.sh
	$(BIN)/python -m pytest -m kernels tests/system

# Boots guests of the lossless switch in emulation, one of them by libvirt: a few minutes.
test-zovn: .venv/.ready
	sh tests/system/xen/requirements.sh
	sh scripts/setup-libvirt.sh
	sh scripts/setup-zovn.sh
	$(BIN)/python -m pytest -m zovn tests/system

deb: .venv/.ready shield core
	sh deploy/debian/build.sh
	sh deploy/debian/build-policer.sh
	sh deploy/debian/build-xco.sh
	sh deploy/debian/build-zovn.sh

man: .venv/.ready
	$(BIN)/python -m deploy.manpages build/man

# Renders docs/notebooks, in a minute. Run it after each change of a notebook.
notebooks: .venv/.ready
	$(BIN)/python -m scripts.notebooks

# .pre-commit-config.yaml has the same checks.
lint: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	git ls-files -z '*.c' '*.h' | xargs -0 $(BIN)/clang-format --dry-run --Werror
	$(BIN)/mypy

format: .venv/.ready
	$(BIN)/ruff format .
	git ls-files -z '*.c' '*.h' | xargs -0 $(BIN)/clang-format -i

# Which lines of the pure cores their tests reach: files with all lines reached are only counted.
coverage: .venv/.ready core
	HYPOTHESIS_PROFILE=coverage $(BIN)/python -m scripts.coverage

# Changes the pure cores in a copy, one place at a time, and counts what the tests notice.
mutants: .venv/.ready
	$(BIN)/python -m scripts.mutation --list-survivors

# Five hours, as root on an otherwise idle machine: simulations and real packets. RESUME=1 goes on.
bench: .venv/.ready core shield
	sh scripts/setup-libvirt.sh
	sh scripts/setup-zovn-bench.sh
	$(BIN)/python -m benchmarks.all $(if $(RESUME),--resume)

# Every benchmark at its shortest: shows that all of them run, and measures nothing.
bench-quick: .venv/.ready core shield
	sh scripts/setup-libvirt.sh
	sh scripts/setup-zovn-bench.sh
	$(BIN)/python -m benchmarks.all --quick $(if $(RESUME),--resume)

bench-xco: .venv/.ready core
	$(BIN)/python -m benchmarks.all --only xco $(if $(RESUME),--resume)

# The papers' experiments in one report, as root: two hours. QUICK=1: ten minutes; RESUME=1 goes on.
evaluation: .venv/.ready core shield
	$(BIN)/python -m benchmarks.evaluation $(if $(QUICK),--quick) $(if $(RESUME),--resume) \
		$(if $(ONLY),--only $(ONLY))

# Two of them on emulated Xen, as root: an hour, with what is in the cache of test-xen. Same options.
evaluation-xen: .venv/.ready shield
	sh tests/system/xen/requirements.sh
	QUICK=$(QUICK) RESUME=$(RESUME) $(BIN)/python -m pytest -m xen_evaluation tests/system; \
		status=$$?; $(BIN)/python -m benchmarks.evaluation --report $(if $(QUICK),--quick) && exit $$status

.venv/.demo: requirements.lock requirements-uv.lock pyproject.toml
	PYTHON=$(PYTHON) sh scripts/setup.sh demo

.venv/.ready: .venv/.demo
	sh scripts/setup.sh all

# Needs uv. The files have only hashes and versions, and name no index.
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
lock:
	$(LOCK) --group dev pyproject.toml --output-file requirements.lock
	$(LOCK) --group pyproject.toml:setup --output-file requirements-uv.lock

clean:
	rm -rf .venv build dist xco/core/build zovn/core/build zovn/core/simulate/build xtc/shield/shield.bpf.o

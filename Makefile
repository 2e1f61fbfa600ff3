# Two commands do everything: `make demo` and `make test`. The virtual environment is in .venv.

PYTHON ?= python3
BIN := .venv/bin

# Tests start hundreds of processes, each of which would compile the packages anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-xco core shield prepared packages guests check test test-xen test-kernels lint mutants bench bench-xco deb man notebooks lock clean

demo: .venv/.ready shield
	$(BIN)/python -m benchmarks.demo
	$(BIN)/python -m benchmarks.demo_policer

# Under two minutes, as root: five senders to one receiver without coordination, and with it.
demo-xco: .venv/.ready core
	$(BIN)/python -m benchmarks.demo_xco

# What of xco is compiled, where there is a compiler; else it says what is missing.
core:
	sh scripts/setup-xco.sh

# The BPF program of shields and limits, where there is clang; else there are no shields.
shield:
	sh scripts/setup-shield.sh

# What the system lacks for tests, as root; else it says so, and tests with it are skipped.
prepared: packages guests

packages:
	sh scripts/setup-tests.sh
	sh scripts/setup-xco.sh
	sh scripts/setup-shield.sh

guests: .venv/.ready packages
	sh scripts/setup-libvirt.sh

# Unit and property tests in a minute and a half: no root, no packets, no other project's programs.
check: .venv/.ready
	HYPOTHESIS_PROFILE=check $(BIN)/python -m pytest -n 3 --dist loadfile -p no:schemathesis \
		-m "not xen and not external" tests/unit tests/property

# Every test but those in emulation. TESTS="--phase rates" runs the ones that judge rates and times.
test: .venv/.ready prepared
	$(BIN)/python -m scripts.phases $(TESTS)

# Boots Xen in emulation: a quarter of an hour from nothing, half of that with a cached image.
test-xen: .venv/.ready shield
	sh tests/system/xen/requirements.sh
	$(BIN)/python -m pytest -m xen tests/system

# Boots Debian's kernel in emulation, and KERNELS="VMLINUZ ..." too: under half a minute each.
test-kernels: .venv/.ready shield
	sh tests/system/xen/requirements.sh
	$(BIN)/python -m pytest -m kernels tests/system

deb: .venv/.ready shield core
	sh deploy/debian/build.sh
	sh deploy/debian/build-policer.sh
	sh deploy/debian/build-xco.sh

man: .venv/.ready
	$(BIN)/python -m deploy.manpages build/man

# A minute: what docs/notebooks shows. Run it after each change of a notebook.
notebooks: .venv/.ready
	$(BIN)/python -m scripts.notebooks

lint: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Changes the pure cores in a copy, one place at a time, and counts what the tests notice.
mutants: .venv/.ready
	$(BIN)/python -m scripts.mutation --list-survivors

# Four hours, as root on a machine that does nothing else: what is simulated first, then real packets.
bench: .venv/.ready
	sh scripts/setup-libvirt.sh
	$(BIN)/python -m benchmarks.laws
	$(BIN)/python -m benchmarks.promise
	$(BIN)/python -m benchmarks.lag
	$(BIN)/python -m benchmarks.cost
	$(BIN)/python -m benchmarks.shield
	$(BIN)/python -m benchmarks.floors
	$(BIN)/python -m benchmarks.loop --full 1
	$(BIN)/python -m benchmarks.periods
	$(BIN)/python -m benchmarks.kernel_short
	$(BIN)/python -m benchmarks.promise_packets
	$(BIN)/python -m benchmarks.platforms
	$(BIN)/python -m benchmarks.quota_share
	$(BIN)/python -m benchmarks.coverage
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.policer_sharing
	$(BIN)/python -m benchmarks.policer_reaction
	$(BIN)/python -m benchmarks.policer_scale
	$(BIN)/python -m benchmarks.policer_soak
	$(BIN)/python -m benchmarks.policer_alternate
	$(BIN)/python -m benchmarks.policer_history
	$(MAKE) bench-xco

bench-xco: .venv/.ready core
	$(BIN)/python -m benchmarks.xco_scheduler
	$(BIN)/python -m benchmarks.xco_exchange
	$(BIN)/python -m benchmarks.xco_load
	$(BIN)/python -m benchmarks.xco_flood
	$(BIN)/python -m benchmarks.xco_gate
	$(BIN)/python -m benchmarks.xco_gate_rtnl
	$(BIN)/python -m benchmarks.xco_classify
	$(BIN)/python -m benchmarks.xco_pace
	$(BIN)/python -m benchmarks.xco_incast
	$(BIN)/python -m benchmarks.xco_incast --ways uncoordinated --bottleneck 500Mbps
	$(BIN)/python -m benchmarks.xco_mix
	$(BIN)/python -m benchmarks.xco_reads
	$(BIN)/python -m benchmarks.xco_short
	$(BIN)/python -m benchmarks.xco_ping
	$(BIN)/python -m benchmarks.xco_conservation
	$(BIN)/python -m benchmarks.xco_late
	$(BIN)/python -m benchmarks.xco_responsiveness
	$(BIN)/python -m benchmarks.xco_uplink
	$(BIN)/python -m benchmarks.xco_migration
	$(BIN)/python -m benchmarks.xco_simulated
	$(BIN)/python -m benchmarks.xco_simulation

.venv/.ready: requirements.lock pyproject.toml
	PYTHON=$(PYTHON) sh scripts/setup.sh

# Needs uv. Hashes and versions only: no index is named in the file.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --group dev pyproject.toml --output-file requirements.lock

clean:
	rm -rf .venv build dist xco/core/build xtc/shield/shield.bpf.o

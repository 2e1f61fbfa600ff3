# Two commands do everything: `make demo` and `make test`. The virtual environment is in .venv.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench lock clean

demo: .venv/.ready
	$(BIN)/python -m benchmarks.demo

test: .venv/.ready
	$(BIN)/python -m pytest

lint: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.ready
	$(BIN)/python -m benchmarks.laws
	$(BIN)/python -m benchmarks.cost
	$(BIN)/python -m benchmarks.loop --full 1

.venv/.ready: requirements.lock pyproject.toml
	PYTHON=$(PYTHON) sh scripts/setup.sh

# Needs uv. Hashes and versions only: no index is named in the file.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --group dev pyproject.toml --output-file requirements.lock

clean:
	rm -rf .venv build dist

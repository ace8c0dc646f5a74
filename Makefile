# Each target makes its own virtual environment first; `make demo` and `make test` need only Python 3.11+.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.jobspec-ready

.PHONY: demo test proof mutants coverage lint format bench clean

# The two example jobs on the bundled Postgres: what ran, and why the rest did not.
demo: $(READY)
	$(BIN)/jobspec demo

# All tests. Postgres is the bundled one; JOBSPEC_TEST_DSN names another.
test: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile

# All that attacks the guarantees, with larger numbers than `make test`, on the bundled Postgres and on
# Debian's 15 where that is installed; then a table of what came of it. It takes some hours.
proof: $(READY)
	$(BIN)/python tests/proof/prove.py

# Small faults put into the heart of the code, each of which a test must find: an hour or more.
mutants: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[mutation]'
	$(BIN)/python tests/mutation/run.py

# All tests, and which lines and branches of `jobspec` and `jobspec_engine` they took: half as slow again.
coverage: $(READY)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2 --dist loadfile
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include='jobspec/*'
	$(BIN)/coverage report --include='engine/*'

# What a machine can say about the code without running it.
lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The engine against the least SQL that could do the same, on this machine: a minute.
bench: $(READY)
	$(BIN)/python tests/bench/bench_engine.py

clean:
	rm -rf $(VENV) dist build .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[engine,dev]'
	touch $@

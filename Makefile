# Everything a developer or CI runs. `make` alone lists the targets.
# Needs Python 3.11 and make; Spark also needs Java 17. The rest is installed into .venv.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Set in some containers; compiled files are what makes the second start fast.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3.11
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JAR := src/omnigraph/spark/columnar.jar
BENCH_VENV := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready
CONNECT := .venv-connect
CONNECT_READY := $(CONNECT)/.ready
PYTEST := $(BIN)/pytest -n $(JOBS)

.PHONY: help setup demo docs test check cost sim mutants spark-proof bench wheel clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) $(JAR) ## Make .venv from requirements.lock (the other targets do this by themselves)

$(READY): requirements.lock pyproject.toml scripts/make-venv
	scripts/make-venv $(PYTHON) $(VENV) requirements.lock --editable
	@touch $@

$(JAR): $(wildcard jvm/*.scala) scripts/make-jar $(READY)
	scripts/make-jar $(BIN)/python $@

demo: $(READY) $(JAR) ## See a graph loaded, asked, branched, merged, read back in time
	$(BIN)/python demo/tour.py

docs: $(READY) $(JAR) ## Bring the guide up to date: its output, and the pages made from the program
	UPDATE_GOLDEN=1 $(PYTEST) tests/docs tests/spark/test_guide.py

test: $(READY) $(JAR) ## All tests but the long ones, on JOBS=2 processes
	$(PYTEST) -m "not slow"

check: $(READY) ## Lint, format, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

cost: $(READY) ## The cost contract only: requests per operation, at every depth
	$(PYTEST) tests/cost

sim: $(READY) $(JAR) ## The long proofs: many processes, random kills, deep hypothesis
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-deep} $(PYTEST) -m slow

mutants: $(READY) ## Leave out one rule after the other: which world finds it?
	$(BIN)/python -m tests.sim.world.mutants

spark-proof: $(READY) $(JAR) $(CONNECT_READY) ## The proofs on Spark (needs Java 17 or newer)
	JAVA_HOME="$$(scripts/find-java)" PYSPARK_PYTHON="$(CURDIR)/$(BIN)/python" $(BIN)/pytest tests/spark
	JAVA_HOME="$$(scripts/find-java)" PYSPARK_PYTHON="$(CURDIR)/$(BIN)/python" \
	  PYTHONPATH="$(CURDIR)/$(CONNECT)" $(BIN)/pytest tests/spark/proof_connect.py

$(CONNECT_READY): tests/spark/requirements-connect.lock $(READY)
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --upgrade \
	  --target $(CONNECT) --requirement $<
	@touch $@

bench: $(BENCH_READY) ## Measure, side by side with the peers (in .venv-bench)
	$(BENCH_VENV)/bin/python -m benchmarks

$(BENCH_READY): requirements.lock benchmarks/requirements-peers.lock pyproject.toml scripts/make-venv
	scripts/make-venv $(PYTHON) $(BENCH_VENV) benchmarks/requirements-peers.lock --editable
	@touch $@

wheel: $(READY) $(JAR) ## Build the wheel into dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

clean: ## Remove what was made, the virtual environments too
	rm -rf $(VENV) $(BENCH_VENV) $(CONNECT) $(JAR) dist build .pytest_cache .mypy_cache .ruff_cache \
	  .import_linter_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

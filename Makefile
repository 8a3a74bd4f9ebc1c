# Every command of the project. It needs Python 3.11 or newer, make and the package index; the rest it fetches
# into .venv, once: a stamp remembers it until pyproject.toml or constraints.txt changes.

PYTHON ?= python3
ARGS   ?=

VENV   := .venv
BIN    := $(VENV)/bin
PIP    := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install -qq -c constraints.txt
PYTEST := $(BIN)/python -m pytest -q
# What `ogive demo` needs, and what every other command needs.
DEMO   := $(VENV)/.stamp-demo
DEV    := $(VENV)/.stamp-dev

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test slow check bench clean

help: ## list the commands (this is the default)
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(DEV) ## create .venv with everything the commands below need (they do it by themselves)
	@echo "Ready: $(BIN)/ogive --help"

demo: $(DEMO) ## fit a small table, write quantiles and a picture, and say where they are
	@$(BIN)/ogive demo $(ARGS)

test: $(DEV) ## run the fast tests and report how much of src/ they cover (at least 95 %)
	OMP_NUM_THREADS=1 $(PYTEST) -n auto -m "not slow" --cov=ogive --cov-report=term $(ARGS)

slow: $(DEV) ## run the long statistical tests
	$(PYTEST) -m slow $(ARGS)

check: $(DEV) ## lint, format, types and the import rule
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src/
	$(PYTEST) tests/test_architecture.py

bench: $(DEV) ## list or run the benchmarks, e.g. make bench ARGS="uci"
	@$(BIN)/ogive bench $(ARGS)

clean: ## remove caches and build output (.venv stays; delete it for a fresh start)
	rm -rf build dist .coverage .coverage.* htmlcov .pytest_cache .ruff_cache .mypy_cache .hypothesis ogive-demo
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Not a file made from another: whatever is missing is put there.
$(VENV)/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "PYTHON must be Python 3.11 or newer; got '$(PYTHON)': $$($(PYTHON) --version 2>&1 | tail -n 1)." >&2; \
	  echo "Install one, or name it: make $(or $(MAKECMDGOALS),setup) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(DEMO): pyproject.toml constraints.txt | $(VENV)/.stamp-venv
	@echo "Setting up $(VENV) to run ogive (once, about a minute) ..."
	@$(PIP) -e ".[plot]"
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(VENV)/.stamp-venv
	@echo "Setting up $(VENV) to develop and test ogive (once, one to two minutes) ..."
	@$(PIP) -e ".[dev,plot,bench]"
	@touch $(DEMO) $@

# `make` lists what there is. `make demo` and `make test` need git, make and Python 3.11 with venv.
.DEFAULT_GOAL := help
.PHONY: help setup demo test screenshots accept-full prove crash bench bench-peers lint type fmt docs pins clean
MAKEFLAGS += --no-print-directory

PYTHON ?= $(shell command -v python3.11 || command -v python3)
UV := $(shell command -v uv)
BIN := .venv/bin
PEERS := build/venv-peers
FULL := build/full
# More than there are processors, because most tests wait for something.
WORKERS ?= 4
# Seconds; .ci/run allows more, so that a busy machine still says what is right.
TEST_WITHIN ?= 720
SEEDS ?= 2000
KILLS ?= 2000
ARGS ?=

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/ready ## make .venv with all that demo and test need
	@:

demo: setup ## watch answers get lost, and what happens then
	$(BIN)/ascertain demo --once $(ARGS)

test: setup ## run the tests, e.g. make test ARGS="tests/core -x"
	@$(BIN)/python tests/packages.py
	$(BIN)/pytest -n $(WORKERS) --session-timeout=$(TEST_WITHIN) $(ARGS)

accept-full: setup ## more targets, installed into build/full (5 min, 1.4 GB); then docs/targets.md
	$(BIN)/python tests/acceptance/full/install.py $(FULL)
	ACCEPT_FULL=$(FULL) $(BIN)/pytest tests/acceptance/test_full.py tests/acceptance/test_matrix.py \
	  $(ARGS)
	$(BIN)/python docs/targets.py --take

prove: setup ## play SEEDS=n schedules against the laws; every guard switched off once
	$(BIN)/python -m tests.sim.prove --seeds $(SEEDS)

crash: setup ## kill workers KILLS=n times on each store, servers for 5 min, lose disks
	$(BIN)/python -m tests.crash.run --kills $(KILLS) $(ARGS)

bench: setup ## measure against the bare drivers (6 min), e.g. make bench ARGS=--quick
	$(BIN)/python -m bench.run $(ARGS)

bench-peers: $(PEERS)/ready ## measure beside other libraries (5 min), ARGS=--quick one
	$(PEERS)/bin/python -m bench.peers.run $(ARGS)

screenshots: setup ## pictures of the console into build/screenshots; ARGS=docs: of the README
	PYTHONPATH=tests $(BIN)/python -m console.screenshots $(ARGS)

lint: .venv/ready-lint ## check style, formatting and import direction
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

type: .venv/ready-lint ## check the types (mypy --strict)
	$(BIN)/mypy

fmt: .venv/ready-lint ## format, and fix what can be fixed
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

docs: setup ## write the generated pages again
	$(BIN)/python docs/generate.py

pins: .venv/ready-pins ## choose the newest versions again; UPGRADE= keeps what is pinned
	$(COMPILE) --extra demo --extra postgres --extra otel --group build --group test \
	  -o requirements/dev.txt
	$(COMPILE) --group lint -c requirements/dev.txt -o requirements/lint.txt
	$(COMPILE) --extra postgres --group build --group peers -o requirements/peers.txt

clean: ## remove .venv and what the tools left behind
	rm -rf .venv .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache \
	  build dist
	find src tests docs bench -name __pycache__ -type d -prune -exec rm -rf {} +

# --- How .venv is made -------------------------------------------------------------------------
# A stamp file says that a step is done; it is repeated when a pin or pyproject.toml changes.
# Everything is installed with checked hashes, the project itself without any download.
UPGRADE ?= --upgrade
COMPILE = $(BIN)/uv pip compile pyproject.toml --quiet $(UPGRADE) --universal --python-version 3.11 \
  --generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make pins"
ifdef UV
  INSTALL = uv pip install --quiet --python $(BIN)/python
  VENV = uv venv --quiet --clear --python $(PYTHON) .venv
else
  INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
  VENV = $(PYTHON) -m venv --clear .venv
endif

.venv/bin/python:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed (found: $(or $(PYTHON),none)); set PYTHON=..." >&2; exit 1; }
	@echo "Making .venv with $(PYTHON) ..."
	@$(VENV) || { rm -rf .venv; \
	  echo "Could not make .venv. On Debian: apt-get install python3-venv" >&2; exit 1; }

.venv/ready: requirements/dev.txt pyproject.toml | .venv/bin/python
	@echo "Installing what demo and test need ..."
	@$(INSTALL) --require-hashes -r requirements/dev.txt
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

.venv/ready-lint: requirements/lint.txt .venv/ready
	@echo "Installing the linters ..."
	@$(INSTALL) --require-hashes -r requirements/lint.txt
	@touch $@

.venv/ready-pins: | .venv/bin/python
	@$(INSTALL) uv
	@touch $@

# The other libraries live apart: their pins need not agree with those of the tests.
$(PEERS)/ready: BIN := $(PEERS)/bin
$(PEERS)/ready: requirements/peers.txt pyproject.toml
	@echo "Making $(PEERS), with what Ascertain is compared with ..."
	@$(patsubst .venv,$(PEERS),$(VENV))
	@$(INSTALL) --require-hashes -r requirements/peers.txt
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# Two commands matter: `make sweep` and `make test`. Both create what they need first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES ?= 1

.PHONY: sweep test test-fast test-real lint format

sweep: $(VENV)/workflow.stamp
	$(BIN)/snakemake --cores $(CORES)

# The workflow tests mostly wait for servers, so several at once; the real engine wants the cores for itself.
test: lint
	$(BIN)/python -m pytest -n 4 -m "not real_engine"
	$(BIN)/python -m pytest -m real_engine

test-fast: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n 2 -m "not real_engine and not workflow"

test-real: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m real_engine

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

# A stamp is written last, so an interrupted installation starts over.
$(VENV)/%.stamp: envs/%.txt envs/workflow.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $(PYTHON) is `$(PYTHON) -V`. Give another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV) || { echo "creating $(VENV) failed: install the venv module of $(PYTHON) (Debian: python3-venv)" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# Begin with `make demo` and `make test`. Both install what they need in .venv: the
# first what `pip install flux-burst-orchestrator` brings, the second all developers need.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.dev

.PHONY: demo compiled test soak e2e mutants lint bench docs clean help
help:
	@echo "make demo   two whole bursts on this machine, in a minute"
	@echo "make test   linters, and the tests that need Python alone; minutes"
	@echo "            MEASURED=1 adds coverage and its gates, as in CI"
	@echo "make e2e    the tests on what is real: Flux, many users, Kubernetes, nodes, kind;"
	@echo "            STAGE=flux runs one stage, STAGE='flux kind' two; as root on Debian"
	@echo "make soak   the state machine test with new seeds; SOAK=30m sets for how long"
	@echo "make mutants  which changes of the code no test notices"
	@echo "make lint   ruff, mypy, import-linter only"
	@echo "make docs   the settings and metrics pages and man pages from the code; the site of docs"
	@echo "make bench  all benchmarks; each prints ratios that were measured in one run"

# uv takes a quarter of pip's time for all that developers need. pip does it where uv
# reaches no registry: it alone knows what pip.conf names.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and \
	  "This needs Python 3.11 or later; this is %d.%d. Say make PYTHON=..." % v[:2])'
	@echo "making $(VENV) and installing what burst itself needs; seconds"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) -e .
	@touch $@

$(DEV): $(READY)
	@echo "installing what developers need in $(VENV); a minute at most"
	@$(PIP_INSTALL) uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -e '.[dev]' \
	  || $(PIP_INSTALL) -e '.[dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/burst demo

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests benchmarks
	$(BIN)/lint-imports --no-cache

# On a fresh clone each worker of pytest-xdist would compile all tests by itself. What
# cannot be collected is told by the run that follows, not here.
compiled: $(DEV)
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest --collect-only -qq -p no:cacheprovider >/dev/null 2>&1 || true

MEASURED ?=
test: $(DEV)
	@$(MAKE) --no-print-directory -j2 lint compiled
	$(BIN)/python -m tests $(if $(MEASURED),--measured)

SOAK ?= 10m
soak: $(DEV)
	$(BIN)/python -m tests.machine $(SOAK) $(SEED)

STAGE ?=
e2e: $(DEV)
	$(BIN)/python -m tests.e2e $(STAGE)

mutants: $(DEV)
	$(BIN)/python -m tests.mutants

bench: $(DEV)
	$(BIN)/python -m benchmarks

docs: $(DEV)
	PYTHONPATH=.:plugins $(BIN)/python -m docs.generate
	$(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* site

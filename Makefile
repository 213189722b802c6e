# Two commands on a fresh machine:
#   make matrix   where does the test fail, and how often
#   make test     does the kit itself work
# Further words for `repro matrix` go into ARGS: make matrix ARGS="--only 'triton3.7*' --trials 50"

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet
ARGS   ?=

.PHONY: matrix bisect diagnose report plan doctor test test-fast lint lock clean help

matrix: $(VENV)/.kit            ## every cell of matrix.yaml: image, suite, failure rates, table
	@$(BIN)/repro matrix $(ARGS)

plan: $(VENV)/.kit              ## what `make matrix` would do, and how long it would take
	@$(BIN)/repro plan $(ARGS)

doctor: $(VENV)/.kit            ## what this machine has and lacks, with the fix
	@$(BIN)/repro doctor $(ARGS)

bisect: $(VENV)/.kit            ## since which version does it fail, or with ARGS="--repo . --old REV" which commit
	@$(BIN)/repro bisect $(ARGS)

diagnose: $(VENV)/.kit          ## why does it fail: every suspected cause, weighed
	@$(BIN)/repro diagnose $(ARGS)

report: $(VENV)/.kit            ## what one attaches to the issue
	@$(BIN)/repro report $(ARGS)

# Tests of containers run one at a time: they count what the engine holds. Triton decides at its import
# whether it interprets kernels, so those tests have processes of their own.
test: $(VENV)/.dev              ## the whole test suite, Docker parts included where an engine answers
	@$(BIN)/python -m pytest -n auto -m "not docker" tests/unit tests/integration tests/suite $(ARGS)
	@$(BIN)/python -m pytest -m docker tests/integration $(ARGS)
	@TRITON_INTERPRET=1 $(BIN)/python -m pytest -n auto tests/operator $(ARGS)

test-fast: $(VENV)/.dev         ## the part of it that takes a minute or two
	@$(BIN)/python -m pytest -n auto -m "not slow and not docker" tests/unit tests/suite $(ARGS)

lint: $(VENV)/.dev              ## ruff and mypy --strict
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

lock: $(VENV)/.dev              ## pin the newest versions that pyproject.toml admits
	@cd requirements && for set in kit dev; do \
	  ../$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-annotate --extra build $$(test $$set = dev && echo --extra dev) ../pyproject.toml -o $$set.lock; done

clean:                          ## remove the environment and every result (.venv, .repro)
	rm -rf $(VENV) .repro

help:                           ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 12

# The kit's own environment, from a lock file with hashes.
$(VENV)/.kit: requirements/kit.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "the kit needs Python 3.11 or later, and $(PYTHON) is older; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 3; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "$(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv"; exit 3; }
	@echo "setting up $(VENV) (once)" >&2
	@$(PIP) --require-hashes --requirement requirements/kit.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# What the tests need besides: test tools from the lock file, and a CPU build of torch with its Triton.
$(VENV)/.dev: $(VENV)/.kit requirements/dev.lock
	@echo "adding test tools, torch (CPU) and triton to $(VENV) (once)" >&2
	@$(PIP) --require-hashes --requirement requirements/dev.lock
	@$(BIN)/python -m repro.engines.packages install --torch 2.13.0 --cuda cpu --triton 3.7.1 --python $(BIN)/python
	@touch $@

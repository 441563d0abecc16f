# Two commands: `make demo` and `make test`. Both need nothing but Python 3.11 or later.
# The environment is made once, in .venv, and again only if pyproject.toml or constraints.txt change.

PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
READY := .venv/.ready

# One thread for each test process: several of them would fight for the cores.
ONE_THREAD := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
# Old and new versions of pip learn in different ways which versions to build with.
PINNED := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1

.PHONY: help demo test lint bench faults fuzz audit clean
help:
	@echo "make demo    train on the digits that come with the package, and write a report"
	@echo "make test    run all tests"
	@echo "make lint    check format, style and types"
	@echo "make bench   measure the speed of what must be fast"
	@echo "make faults  kill, fill, flip and truncate: the long campaign (about an hour; FAULTS=… for some)"
	@echo "make fuzz    feed garbage to all readers (FUZZ_SECONDS=600)"
	@echo "make audit   ask the public databases for known holes in the pinned versions (needs a network)"
	@echo "make clean   remove the environment and all caches"

demo: $(READY)
	OMP_WAIT_POLICY=PASSIVE $(BIN)/torchsite demo

test: $(READY)
	$(ONE_THREAD) $(BIN)/pytest -n $(WORKERS) $(ARGS)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict

bench: $(READY)
	$(BIN)/python benchmarks/run.py $(ARGS)

faults: $(READY)
	$(ONE_THREAD) $(BIN)/python tools/faults.py $(FAULTS)

fuzz: $(READY)
	$(ONE_THREAD) $(BIN)/python tools/fuzz.py --seconds $(or $(FUZZ_SECONDS),600)

audit: .venv-audit/.ready
	.venv-audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip

.venv-audit/.ready: constraints.txt
	$(PYTHON) -m venv .venv-audit
	$(PINNED) .venv-audit/bin/python -m pip install --quiet pip-audit
	@touch $@

clean:
	rm -rf .venv .venv-audit .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "torchsite needs Python 3.11 or later: name one with make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(PINNED) $(BIN)/python -m pip install --quiet --editable '.[dev,baselines,web,pretrained,export,fuzz]'
	@touch $@

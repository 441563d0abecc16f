# Two commands: `make demo` and `make test`. Both need nothing but Python 3.11 or later.
# The environment is made once, in .venv, and again only if pyproject.toml or constraints.txt change: the demo
# installs what the package itself needs, everything else comes with the first command that wants it.

PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
CORE := .venv/.ready-core
READY := .venv/.ready-all
EXTRAS := .[dev,audit,baselines,web,pretrained,tensorboard,export,docs,fuzz,dicom,microscopy]
# Apart from the rest, where tests find them (tests/backbone_libraries.py): where torchvision is not of torch's
# own build it cannot be imported, and libraries that try to would break.
APART := timm torchvision

# One thread for each test process: several of them would fight for the cores.
ONE_THREAD := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
# As if the processor had AVX2 and nothing newer, like most: other code of torch and of oneDNN runs then.
AVX2 := ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2
# What trains, and what networks are made of.
AVX2_TESTS ?= $(wildcard tests/unit/training tests/unit/model tests/unit/*objective* tests/laws tests/reference)

# Old and new versions of pip learn in different ways which versions to build with.
PINNED := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1
PIP := $(PINNED) $(BIN)/python -m pip install --quiet --no-compile
UV := UV_CONSTRAINT=constraints.txt UV_BUILD_CONSTRAINT=constraints.txt uv pip install --quiet --python $(BIN)/python
# uv is faster where it is there; pip knows of places that uv was not told of.
install = { command -v uv >/dev/null && $(UV) --editable '$(1)' 2>/dev/null; } || $(PIP) --editable '$(1)'

.PHONY: help demo test test-all test-avx2 lint docs package bench faults fuzz audit clean
help:
	@echo "make demo    train on the digits that come with the package, and write a report"
	@echo "make test    run unit tests, laws, references and one end-to-end test of each kind (ARGS=… for some)"
	@echo "make test-all  run every test"
	@echo "make test-avx2  those that train and those of networks, as if the processor had AVX2 and nothing newer"
	@echo "make lint    check format, style and types"
	@echo "make docs    build the documentation site in build/site: strict, with search, readable without a network"
	@echo "make package  build wheel and sdist in dist/, install the wheel alone, run the quick start from it"
	@echo "make bench   measure the speed of what must be fast"
	@echo "make faults  kill, fill, flip and truncate: the long campaign (about an hour; FAULTS=… for some)"
	@echo "make fuzz    feed garbage to all readers (FUZZ_SECONDS=600)"
	@echo "make audit   ask the public databases for known holes in the pinned versions (needs a network)"
	@echo "make clean   remove the environment and all caches"

demo: $(CORE)
	OMP_WAIT_POLICY=PASSIVE $(BIN)/torchsite demo

test: $(READY)
	$(ONE_THREAD) $(BIN)/pytest -n $(WORKERS) -m "not slow" $(ARGS)

test-all: $(READY)
	$(ONE_THREAD) $(BIN)/pytest -n $(WORKERS) $(ARGS)

test-avx2: $(READY)
	$(AVX2) $(ONE_THREAD) $(BIN)/pytest -n $(WORKERS) $(or $(ARGS),$(AVX2_TESTS))

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict

docs: $(READY)
	@# The page that runs in the browser alone is part of the site, where npm can fetch what it runs on.
	@$(BIN)/torchsite page mnist --out build/page >/dev/null 2>&1 \
	  || echo "the site has no page to try out: torchsite page could not be run (it needs npm once)"
	$(ONE_THREAD) NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --clean
	@echo "open build/site/index.html"

package: $(READY)
	$(PINNED) $(BIN)/python tools/package.py $(ARGS)

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

$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "torchsite needs Python 3.11 or later: name one with make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(call install,.)
	@touch $@

$(READY): $(CORE)
	$(call install,$(EXTRAS))
	$(PIP) --no-deps --upgrade --target .venv/backbones $(APART)
	@touch $@

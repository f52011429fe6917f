# make test   everything that must hold, on both supported generations of DuckDB, on
#             MonetDB and on PostgreSQL
# make demo   TPC-C and analytics side by side, through tique
# make elle   Elle's verdicts on the kept histories beside ours (needs Java and Leiningen)
#
# All work from a fresh clone; PYTHON=… chooses the interpreter (3.11 or later).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help

PYTHON ?= python3
PYTEST_ARGS ?=

# DuckDB 2.0 with the compiled sqlglot, and DuckDB 1.5 with the pure one. The servers do
# not depend on DuckDB's version: MonetDB's tests run in the first, PostgreSQL's in the
# second.
VENV := .venv
VENV15 := .venv-duckdb15

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
export PIP_PROGRESS_BAR := off
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
# Every worker and every process that a test starts would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX

.PHONY: help
help:
	@echo 'make setup | test | test-sqlalchemy | test-long | citus | coverage | lint | docs | demo | elle | clean'

# What a bare Debian lacks: the module that makes environments, a C compiler (without one
# the sequencer written in Python steps in, which is no error), PostgreSQL with what
# extensions are compiled with, and a browser for examples/dashboard. Debian's packages start
# servers; no test uses them.
.PHONY: system
system:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'tique needs Python 3.11 or later as $(PYTHON); try make PYTHON=/path/to/python' >&2; \
	  exit 1; }
	@missing=(); \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv); \
	command -v cc >/dev/null || command -v gcc >/dev/null || missing+=(gcc libc6-dev); \
	compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql); \
	compgen -G '/usr/include/postgresql/*/server/postgres.h' >/dev/null || missing+=(postgresql-server-dev-all); \
	PATH=$$PATH:/usr/sbin command -v pgbouncer >/dev/null || missing+=(pgbouncer); \
	command -v chromium >/dev/null || missing+=(chromium); \
	if (( $${#missing[@]} )); then \
	  if [[ $$(id -u) == 0 ]] && command -v apt-get >/dev/null; then \
	    echo "installing $${missing[*]}"; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    apt-get update -qq; \
	    apt-get install -qq -y --no-install-recommends "$${missing[@]}" >/dev/null; \
	  else \
	    echo "missing: $${missing[*]} (run: apt-get install $${missing[*]})" >&2; \
	    [[ " $${missing[*]} " != *' python3-venv '* ]]; \
	  fi; \
	fi

# $(call environment,FOLDER,WHAT TO INSTALL)
define environment
	@echo 'setting up $(1)'
	@$(PYTHON) -m venv --clear $(1)
	@$(1)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(1)/bin/python -m pip install --quiet $(2)
	@touch $@
endef

$(VENV)/.ready: pyproject.toml Makefile | system
	$(call environment,$(VENV),--editable '.[cli$(comma)duckdb$(comma)fast]' 'duckdb==2.0.*' --group dev)

$(VENV15)/.ready: pyproject.toml Makefile | system
	$(call environment,$(VENV15),--editable '.[cli$(comma)duckdb]' 'duckdb==1.5.*' --group test --group bench --group jepsen)

comma := ,

.PHONY: setup
setup: $(VENV)/.ready $(VENV15)/.ready

# Each worker has servers of its own, and waits for them and for time-outs: a third keeps two
# cores busy. One environment after the other, so that neither waits for the slower one's end.
WORKERS ?= 3

.PHONY: test
test: $(VENV)/.ready $(VENV15)/.ready
	@failed=; \
	$(MAKE) --no-print-directory test-duckdb15 || failed=1; \
	$(MAKE) --no-print-directory test-duckdb20 || failed=1; \
	$(MAKE) --no-print-directory test-sqlalchemy || failed=1; \
	[[ ! $$failed ]]
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory docs

# What takes longest and finds something once in a long time: longer hammers, and all of
# PostgreSQL with either sequencer.
.PHONY: test-long
test-long: $(VENV)/.ready $(VENV15)/.ready
	@export TIQUE_TEST_LONG=1; failed=; \
	for run in test-duckdb15 test-plain test-duckdb20; do \
	  $(MAKE) --no-print-directory $$run || failed=1; \
	done; \
	[[ ! $$failed ]]

# Tests kill processes, never the machine: nothing that they can see depends on what is on
# the disk, and waiting for it takes longer than most of them. Without a C compiler they
# wait.
%/nosync.so: tests/nosync.c | %/.ready
	@cc -O2 -shared -fPIC -o $@ $< || touch $@

# (numpy's own threads would turn in circles beside the servers.)
unsynced = OPENBLAS_NUM_THREADS=1 LD_PRELOAD=$$(test -s $(1)/nosync.so && realpath $(1)/nosync.so) $(1)/bin

# A worker that has done its share takes over what another one has not begun.
workers = -n $(WORKERS) --dist worksteal

pytest = $(call unsynced,$(1))/python -m pytest $(workers)

# What is in a run, tests/plugins/selection.py says.
.PHONY: test-duckdb20
test-duckdb20: $(VENV)/.ready $(VENV)/nosync.so
	$(call pytest,$(VENV)) -m in_duckdb20 $(PYTEST_ARGS)

.PHONY: test-duckdb15
test-duckdb15: $(VENV15)/.ready $(VENV15)/nosync.so
	$(call pytest,$(VENV15)) -m in_duckdb15 $(PYTEST_ARGS)

# SQLAlchemy's own suite for its dialects, each in a process of its own.
.PHONY: test-sqlalchemy
test-sqlalchemy: $(VENV)/.ready $(VENV)/nosync.so $(VENV15)/.ready $(VENV15)/nosync.so
	@$(call unsynced,$(VENV))/python -m tests.sqlalchemy.suite duckdb & others=$$!; \
	$(call unsynced,$(VENV))/python -m tests.sqlalchemy.suite monetdb & others+=" $$!"; \
	$(call unsynced,$(VENV15))/python -m tests.sqlalchemy.suite postgresql || failed=1; \
	for each in $$others; do wait $$each || failed=1; done; \
	[[ ! $${failed:-} ]]

.PHONY: test-plain
test-plain: $(VENV15)/.ready $(VENV15)/nosync.so
	$(call pytest,$(VENV15)) -m in_plain $(PYTEST_ARGS)

# Citus, from source, where it is not installed; and its tests. CITUS_SOURCE is a repository.
CITUS ?= v13.2.2
CITUS_SOURCE ?= https://github.com/citusdata/citus.git

.PHONY: citus
citus: $(VENV15)/.ready $(VENV15)/nosync.so
	@$(VENV15)/bin/python -m benchmarks.targets.citus_cluster || \
	  bash benchmarks/targets/build_citus.sh '$(CITUS_SOURCE)' '$(CITUS)'
	$(call unsynced,$(VENV15))/python -m pytest -m in_citus tests/citus $(PYTEST_ARGS)

# Branches of tique, tique_rewriter and tique_backends that any test of `make test` takes,
# in any of its processes. Twice as long as `make test`, and timing is off: a test that
# fails here only says nothing.
.PHONY: coverage
coverage: $(VENV)/nosync.so $(VENV15)/nosync.so
	@rm -f .coverage .coverage.*
	-$(call unsynced,$(VENV15))/coverage run -m pytest $(workers) -m in_duckdb15 -q $(PYTEST_ARGS)
	-$(call unsynced,$(VENV))/coverage run -m pytest $(workers) -m in_duckdb20 -q $(PYTEST_ARGS)
	@$(VENV)/bin/coverage combine --quiet
	@$(VENV)/bin/coverage report --show-missing --skip-covered

.PHONY: lint
lint: $(VENV)/.ready
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# The documentation as a site, in site/: it can be read from the disk, and building it
# fetches nothing.
.PHONY: docs
docs: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

.PHONY: demo
demo: $(VENV)/.ready
	$(VENV)/bin/python -m benchmarks demo

# Elle's verdicts on histories, held against our checker's. Elle comes from Clojars and runs on
# Java 17, which Debian 12 has.
HISTORIES ?= tests/jepsen/histories/*.edn jepsen/histories/*.edn.gz
MODELS := read-committed snapshot-isolation strong-session-snapshot-isolation strong-snapshot-isolation serializable strict-serializable

.PHONY: elle
elle: $(VENV)/.ready
	@missing=(); \
	java=$$(java -version 2>&1 | sed -n '1s/[^"]*"\([0-9]*\).*/\1/p' || true); \
	(( $${java:-0} >= 17 )) || missing+=("Java 17 or later (there is $${java:-none}; Debian: openjdk-17-jre-headless)"); \
	command -v lein >/dev/null || missing+=('Leiningen (https://leiningen.org; Debian: leiningen)'); \
	if (( $${#missing[@]} )); then \
	  echo 'Elle cannot be asked; it needs:' >&2; \
	  printf '  %s\n' "$${missing[@]}" 'repo.clojars.org within reach, once' >&2; \
	  exit 2; \
	fi
	@cd jepsen/elle && lein deps || { \
	  echo 'Elle cannot be asked: its packages did not come; are repo.clojars.org and repo1.maven.org within reach?' >&2; \
	  exit 2; \
	}
	@verdicts=$$(mktemp); trap 'rm "$$verdicts"' EXIT; \
	files=$$(realpath $(HISTORIES)); \
	(cd jepsen/elle && lein run $(MODELS:%=--model %) $$files) >"$$verdicts" || (( $$? < 3 )); \
	$(VENV)/bin/python -m jepsen.elle "$$verdicts"

.PHONY: clean
clean:
	rm -rf $(VENV) $(VENV15) jepsen/elle/target build dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# On a fresh machine with Python >= 3.10 and Java >= 17, `make run` is all that is needed.
SHELL := /bin/bash
PYTHON ?=
SPARK ?=
FORMAT ?= canal
export PYTHON SPARK
# The environment of the Spark that SPARK names; `setup` says so if it is none of tools/spark/versions.
VENV := .venv$(shell SPARK=$(SPARK); . tools/spark/chosen.sh 2>/dev/null && echo "$$suffix")
# Without compiled modules each of the hundreds of processes that tests start would compile its own.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup jars prepare run check quick test engines ci durations snapshots bench bench-steps size soak live lock wheel clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -e 's/:.*## /: /' -e 's/^/make /'
	@echo "make run PYTHON=python3.12 chooses the interpreter; JAVA_HOME chooses Java; make engines SPARK=4.2 another Spark of tools/spark/versions"

setup: ## create .venv with the locked packages, if it is missing or out of date
	@bash tools/setup.sh

jars: setup ## fetch the jars of Kafka, Delta and Iceberg that tests need, if they are missing or out of date
	@bash tools/jars.sh

# Java that cannot write an archive runs as it does without one.
prepare: setup ## keep the classes of Spark in an archive: each run starts some seconds sooner
	@$(VENV)/bin/runner prepare || echo "make: going on without an archive of classes" >&2

run: prepare ## set up, run the project, show the changelog
	$(VENV)/bin/runner run
	@echo
	$(VENV)/bin/runner show --inline "select op, table_name, key_text, after, changed, event_time from changelog where source = 'shop' order by seq" --limit 5
	@echo
	@echo "next:"
	@echo "  .venv/bin/runner ls                 what is in the project"
	@echo "  .venv/bin/runner show -s freshness  how fresh each source is"
	@echo "  .venv/bin/runner test --data        test what was just written"
	@echo "  .venv/bin/runner parse canal FILE   see what one of your files becomes"
	@echo "  .venv/bin/runner --help             everything else"

check: setup ## formatting, lint and types of the Python code
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

# Two Sparks, each for the tests of whole files: planning, which is most of these tests, keeps one core busy.
# Tests start Java often and run many short queries: Java's second compiler would cost more time than it saves.
# With one compiler Java keeps 48 MB for compiled code; a Spark of many tests fills them and then interprets all new code.
PYTEST := JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -Xlog:disable" $(VENV)/bin/python -m pytest -q -rs
BY_MODULE := -n 2 --dist loadfile --no-loadscope-reorder

quick: setup ## the tests that need no Java, on all cores
	$(PYTEST) -n auto --durations-name quick -m "not spark and not engines and not soak"

test: check quick jars prepare ## check, quick, then what a change may break in Spark with Parquet
	$(PYTEST) $(BY_MODULE) --durations-name test -m "spark and not engines and not soak"

engines: jars prepare ## Kafka, Delta, Iceberg, catalogs, a cluster, a registry, Connect, processes of their own, a browser
	$(PYTEST) $(BY_MODULE) --durations-name engines -m "engines and not soak"

ci: check quick test engines ## all that has to pass before a change lands

durations: setup ## keep what the modules of the last quick, test and engines took: tests are shared out among processes by it
	$(VENV)/bin/python -m tests.durations

snapshots: setup ## rewrite the compiled SQL in tests/compiled, docs/examples.md, docs/vendors.md and the generated parts of docs/architecture.md and docs/sql.md
	$(VENV)/bin/python -m tests.snapshots
	$(VENV)/bin/python tools/architecture.py
	$(VENV)/bin/python -m tools.sql_functions
	$(VENV)/bin/python -m tools.format_examples
	$(VENV)/bin/python -m tests.vendors_page

bench: jars prepare ## measure speed
	$(VENV)/bin/python -m tests.bench

bench-steps: jars prepare ## measure each step of a format's SQL: make bench-steps FORMAT=canal
	$(VENV)/bin/python -m tests.bench_steps $(FORMAT)

size: jars prepare ## how big the project is, and how far it is from the command line to Spark's write
	$(VENV)/bin/python -m tools.size

soak: jars prepare ## the long tests, and 5,000 new examples for each test of random input
	$(VENV)/bin/python -m pytest -q -m soak
	$(VENV)/bin/python -m pytest -q -n auto --hypothesis-profile=soak -m "not spark and not engines and not soak"

# LIVE_STATEMENTS=20000 lives for hours, LIVE_SEED=... lives a life again.
live: jars prepare ## long random lives of real databases and tools: PostgreSQL with wal2json and with Debezium, MariaDB with Canal; mirrors compared with both
	@bash tools/jars.sh live
	$(PYTEST) -m soak tests/test_live_database.py tests/test_live_tour.py
	$(PYTEST) tests/test_live_verify.py

lock: ## resolve the dependencies again into requirements.lock
	@bash tools/lock.sh

wheel: setup ## build dist/*.whl
	$(VENV)/bin/python -m pip wheel -q --no-deps --no-build-isolation -w dist .
	@ls dist/*.whl

clean: ## remove everything created here, .venv and written tables included
	rm -rf .venv .venv-spark-* .jars .jars-spark-* .jars-live dist target warehouse spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

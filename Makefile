# A fresh machine with Python >= 3.10 and Java >= 17 needs no more than `make run`.
SHELL := /bin/bash
PYTHON ?=
export PYTHON

.PHONY: help setup jars run test snapshots bench soak lock wheel clean

help: ## say what can be made
	@grep -E '^[a-z]+:.*## ' Makefile | sed -e 's/:.*## /: /' -e 's/^/make /'
	@echo "make run PYTHON=python3.12 chooses the interpreter; JAVA_HOME chooses Java"

setup: ## make .venv with the locked packages, where it is not there yet
	@bash tools/setup.sh

jars: setup ## fetch the jars of Kafka, Delta and Iceberg that tests need, where they are not there yet
	@bash tools/jars.sh

run: setup ## set up, run the project, show the changelog
	.venv/bin/runner run
	@echo
	.venv/bin/runner show --inline "select op, table_name, key_text, after, changed, event_time from changelog where source = 'shop' order by seq" --limit 5
	@echo
	.venv/bin/runner show -s freshness
	@echo
	@echo "next:"
	@echo "  .venv/bin/runner ls                 what the project holds"
	@echo "  .venv/bin/runner test               check what was just written"
	@echo "  .venv/bin/runner parse canal FILE   see what a file of yours becomes"
	@echo "  .venv/bin/runner --help             everything else"

# Tests start Java often, and run many queries for a moment each: its second compiler would cost more than it gives, and loading classes one by one too.
# With one compiler Java keeps room for 48 MB of compiled code: one Spark for all tests fills that in minutes, and is interpreted from then on.
QUICK_JAVA := JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:SharedArchiveFile='$(CURDIR)/.jars/classes.jsa' -Xlog:disable"

test: jars ## all tests; among them are the sample project and every command of the README
	@bash tools/classes.sh
	$(QUICK_JAVA) .venv/bin/python -m pytest -q

snapshots: setup ## write the compiled SQL of all formats and views anew
	.venv/bin/python -m tests.snapshots

bench: jars ## measure speed
	.venv/bin/python -m tests.bench

soak: jars ## the long tests
	.venv/bin/python -m pytest -q -m soak

lock: ## resolve the dependencies again into requirements.lock
	@bash tools/lock.sh

wheel: setup ## build dist/*.whl
	.venv/bin/python -m pip wheel -q --no-deps --no-build-isolation -w dist .
	@ls dist/*.whl

clean: ## remove everything made here, .venv and written tables included
	rm -rf .venv .jars dist target warehouse spark-warehouse metastore_db derby.log .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

#!/usr/bin/env bash
# Writes .jars/classes.jsa: the classes that Spark loads for a run, as Java maps them into memory. Tests start Java some 30 times, and each start
# takes a third less with it. With nothing to do this takes no time. An archive that does not fit, Java leaves alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

archive=$PWD/.jars/classes.jsa stamp=.jars/classes-of
of="$(cksum <requirements.lock) $("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1) $PWD"
if [ "$of" = "$(cat "$stamp" 2>/dev/null)" ]; then exit 0; fi

echo "classes: writing .jars/classes.jsa (half a minute)" >&2
mkdir -p .jars
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && "$OLDPWD/.venv/bin/runner" init project >/dev/null)
echo 'import sys; from runner.cli import main; sys.exit(main(["run", "-q"]))' >"$scratch/run.py"
# Spark starts Python here, not Python Spark: this Java ends by itself, which is when it writes.
(cd "$scratch/project" && PYSPARK_PYTHON=$OLDPWD/.venv/bin/python "$OLDPWD/.venv/bin/spark-submit" --driver-java-options "-XX:ArchiveClassesAtExit=$archive" "$scratch/run.py") >"$scratch/log" 2>&1 ||
    { tail -n 15 "$scratch/log" >&2; echo "classes: this Java writes none, and tests do without" >&2; }
echo "$of" >"$stamp"

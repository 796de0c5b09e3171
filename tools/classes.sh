#!/usr/bin/env bash
# Writes .jars/classes.jsa: the classes that Spark loads for a run, in the form in which Java maps them into memory. Tests start Java about 30 times,
# and each start is a third faster with it. If the archive is up to date, this does nothing. Java ignores an archive that does not fit.
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
# Here Spark starts Python, not Python Spark, so that this Java exits normally: only then does it write the archive.
(cd "$scratch/project" && PYSPARK_PYTHON=$OLDPWD/.venv/bin/python "$OLDPWD/.venv/bin/spark-submit" --driver-java-options "-XX:ArchiveClassesAtExit=$archive" "$scratch/run.py") >"$scratch/log" 2>&1 ||
    { tail -n 15 "$scratch/log" >&2; echo "classes: this Java writes no archive; tests run without it" >&2; }
echo "$of" >"$stamp"

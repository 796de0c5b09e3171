#!/usr/bin/env bash
# Resolves pyproject.toml into requirements.lock: one file for every Python from 3.10 and every system, with hashes.
# The other Sparks of tools/spark/versions have beside it what differs: pyspark, and what it needs itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"${PYTHON:-python3}" -m venv "$scratch"
"$scratch/bin/python" -m pip install -q --disable-pip-version-check uv

lock() { # what to resolve, the lock to write, more options; without `--upgrade` uv keeps the versions of the old lock
    "$scratch/bin/uv" pip compile -q "$1" -o "$2" "${@:3}" --upgrade --universal --python-version 3.10 --generate-hashes \
        --no-emit-index-url --custom-compile-command 'make lock'
    echo "lock: wrote $2, $(grep -c '==' "$2") pins"
}

lock pyproject.toml requirements.lock --extra connect --extra test --extra check --group build
. tools/spark/chosen.sh
for SPARK in "${sparks[@]:1}"; do
    . tools/spark/chosen.sh
    echo "pyspark==$pyspark" >"$scratch/pyspark.in"
    lock "$scratch/pyspark.in" "tools/spark/$SPARK.lock" --no-annotate
done

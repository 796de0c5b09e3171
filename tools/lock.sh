#!/usr/bin/env bash
# Resolves pyproject.toml into requirements.lock: one file for every Python from 3.10 and every system, with hashes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"${PYTHON:-python3}" -m venv "$scratch"
"$scratch/bin/python" -m pip install -q --disable-pip-version-check uv

# Without `--upgrade` uv keeps the versions of the old lock.
"$scratch/bin/uv" pip compile -q pyproject.toml --extra connect --extra test --extra check --group build --upgrade \
    --universal --python-version 3.10 --generate-hashes --no-emit-index-url \
    --custom-compile-command 'make lock' -o requirements.lock
echo "lock: wrote requirements.lock, $(grep -c '==' requirements.lock) pins"

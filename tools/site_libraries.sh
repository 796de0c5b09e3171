#!/usr/bin/env bash
# Fetches with npm the libraries that the page of `runner docs generate` has in it, and axe, with which tests check it, and compares them with
# tools/site_libraries.SHA256SUMS. `tools/site_libraries.sh lock` trusts what it fetches and rewrites that file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
sums="$PWD/tools/site_libraries.SHA256SUMS"
files=(runner/site/vendor/dagre.min.js runner/site/vendor/uPlot.iife.min.js runner/site/vendor/uPlot.min.css tests/site/axe.min.js)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fetch() { # a package with its version, the file in it, where it goes
    local packed
    packed=$(cd "$folder" && npm pack --silent "$1")
    tar -xOzf "$folder/$packed" "package/$2" | sed '/^\/\/# sourceMappingURL=/d' >"$3"
}

fetch @dagrejs/dagre@3.1.3 dist/dagre.min.js "${files[0]}"
fetch uplot@1.6.32 dist/uPlot.iife.min.js "${files[1]}"
fetch uplot@1.6.32 dist/uPlot.min.css "${files[2]}"
fetch axe-core@4.14.1 axe.min.js "${files[3]}"

if [ "${1:-}" = lock ]; then
    sha256sum "${files[@]}" >"$sums"
else
    sha256sum --check --quiet "$sums" && echo "site libraries: as they should be"
fi

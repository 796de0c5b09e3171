#!/usr/bin/env bash
# Fetches the jars of tools/jars/ivy.xml into .jars/spark and .jars/kafka and compares them with tools/jars/SHA256SUMS. If they are up to date, it does nothing.
# `tools/jars.sh lock` trusts what it fetches and rewrites SHA256SUMS.
# IVY_SETTINGS is a file with Ivy's settings, for a mirror; JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=... -Dhttps.proxyPort=...' sets a proxy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C # one order of names everywhere

say() { echo "jars: $*" >&2; }

stop() { # what is wrong, a hint
    printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
    exit 2
}

wanted() { cat tools/jars/ivy.xml tools/jars/SHA256SUMS | cksum; }

sums() { # of all jars in a folder, as in SHA256SUMS
    local program=(sha256sum)
    command -v sha256sum >/dev/null || program=(shasum -a 256) # macOS
    (cd "$1" && "${program[@]}" spark/*.jar kafka/*.jar)
}

fetch() { # into a folder, with the Ivy that pyspark ships; Ivy's cache, which is as large as the jars, is removed with the folder
    local ivy settings=()
    ivy=$(echo .venv/lib/python*/site-packages/pyspark/jars/ivy-*.jar)
    [ -f "$ivy" ] || stop "there is no Ivy in .venv" "run 'make setup'"
    [ -z "${IVY_SETTINGS:-}" ] || settings=(-settings "$IVY_SETTINGS")
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -jar "$ivy" ${settings[@]+"${settings[@]}"} -cache "$PWD/$1/cache" -ivy tools/jars/ivy.xml \
        -confs spark kafka -retrieve "$PWD/$1/[conf]/[artifact]-[revision].[ext]" >"$1/log" 2>&1 && return
    grep -E 'ERROR|WARN|Exception|FAILED|not found' "$1/log" | tail -n 15 >&2 || tail -n 15 "$1/log" >&2
    stop "the jars could not be fetched" "the lines above say what failed; for a proxy or a mirror see the top of tools/jars.sh, else run 'make jars' again"
}

check() { # that a folder has exactly the jars of SHA256SUMS, byte for byte
    sums "$1" | diff tools/jars/SHA256SUMS - >&2 && return
    stop "what was fetched is not what tools/jars/SHA256SUMS lists ('<' is the list, '>' what was fetched)" \
        "run 'make jars' again; after a change of tools/jars/ivy.xml run 'bash tools/jars.sh lock' and look at the diff"
}

locking=${1:-}
stamp=.jars/made-from
if [ -z "$locking" ] && [ "$(wanted)" = "$(cat "$stamp" 2>/dev/null)" ]; then exit 0; fi

mkdir -p .jars
scratch=$(mktemp -d .jars/fetching.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
say "fetching the jars of tools/jars/ivy.xml into .jars (110 MB, a minute or two)"
fetch "$scratch"
if [ "$locking" = lock ]; then sums "$scratch" >tools/jars/SHA256SUMS; fi
check "$scratch"
rm -rf "$stamp" .jars/spark .jars/kafka
mv "$scratch/spark" "$scratch/kafka" .jars/
wanted >"$stamp"
say "done"

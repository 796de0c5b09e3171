#!/usr/bin/env bash
# Fetches the jars of tools/jars/ivy.xml into .jars/spark and .jars/kafka and compares them with tools/jars/SHA256SUMS. With nothing to do it takes no time.
# `tools/jars.sh lock` takes what comes as right and writes SHA256SUMS anew.
# IVY_SETTINGS names a file with Ivy's settings, for a mirror; JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=... -Dhttps.proxyPort=...' sets a proxy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C # one order of names everywhere

say() { echo "jars: $*" >&2; }

stop() { # what is wrong, what would work
    printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
    exit 2
}

wanted() { cat tools/jars/ivy.xml tools/jars/SHA256SUMS | cksum; }

sums() { # of all jars of a folder, as in SHA256SUMS
    local program=(sha256sum)
    command -v sha256sum >/dev/null || program=(shasum -a 256) # macOS
    (cd "$1" && "${program[@]}" spark/*.jar kafka/*.jar)
}

fetch() { # into a folder, with the Ivy that pyspark ships; its cache would be as big again and goes with the folder
    local ivy settings=()
    ivy=$(echo .venv/lib/python*/site-packages/pyspark/jars/ivy-*.jar)
    [ -f "$ivy" ] || stop "there is no Ivy in .venv" "run 'make setup'"
    [ -z "${IVY_SETTINGS:-}" ] || settings=(-settings "$IVY_SETTINGS")
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -jar "$ivy" ${settings[@]+"${settings[@]}"} -cache "$PWD/$1/cache" -ivy tools/jars/ivy.xml \
        -confs spark kafka -retrieve "$PWD/$1/[conf]/[artifact]-[revision].[ext]" >"$1/log" 2>&1 && return
    grep -E 'ERROR|WARN|Exception|FAILED|not found' "$1/log" | tail -n 15 >&2 || tail -n 15 "$1/log" >&2
    stop "the jars could not be fetched" "what failed stands above; behind a proxy or with a mirror see the head of tools/jars.sh, else run 'make jars' again"
}

check() { # that a folder holds the jars of SHA256SUMS, byte for byte, and no other
    sums "$1" | diff tools/jars/SHA256SUMS - >&2 && return
    stop "what was fetched is not what tools/jars/SHA256SUMS lists ('<' is the list, '>' what came)" \
        "run 'make jars' again; after a change of tools/jars/ivy.xml run 'bash tools/jars.sh lock' and look at what changes"
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

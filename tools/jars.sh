#!/usr/bin/env bash
# Fetches jars and compares them with a list of checksums: `tools/jars.sh` those of tools/jars/ivy.xml into .jars, `tools/jars.sh live` those of tools/jars/live.xml, which only `make live` needs, into .jars-live. If they are up to date, it does nothing.
# `tools/jars.sh lock` and `tools/jars.sh live lock` trust what they fetch and rewrite the list.
# SPARK chooses another Spark of tools/spark/versions, with jars of its own: .jars-spark-4.2.
# IVY_SETTINGS is a file with Ivy's settings, for a mirror; JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=... -Dhttps.proxyPort=...' sets a proxy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/spark/chosen.sh
export LC_ALL=C # one order of names everywhere

say() { echo "jars: $*" >&2; }

stop() { # what is wrong, a hint
    printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
    exit 2
}

folder=.jars$suffix list=tools/jars/ivy.xml checksums=tools/jars/${suffix#-}${suffix:+.}SHA256SUMS parts=(spark kafka) size="110 MB"
if [ "${1:-}" = live ]; then
    folder=.jars-live list=tools/jars/live.xml checksums=tools/jars/live.SHA256SUMS parts=(debezium canal jdbc) size="80 MB"
    shift
fi

wanted() { cat "$list" "$checksums" tools/spark/versions | cksum; }

sums() { # of all jars in a folder, as in the list of checksums
    local program=(sha256sum)
    command -v sha256sum >/dev/null || program=(shasum -a 256) # macOS
    (cd "$1" && for part in "${parts[@]}"; do "${program[@]}" "$part"/*.jar; done)
}

fetch() { # into a folder, with the Ivy that pyspark ships; Ivy's cache, which is as large as the jars, is removed with the folder
    local ivy settings=() versions=("-Dspark=$spark" "-Dkafka=$kafka" "-Ddelta=$delta" "-Diceberg=$iceberg")
    if [ "$iceberg" = - ]; then versions+=(-Dwith.iceberg=unserved); else versions+=(-Dwith.iceberg=spark); fi
    ivy=$(echo ".venv$suffix"/lib/python*/site-packages/pyspark/jars/ivy-*.jar)
    [ -f "$ivy" ] || stop "there is no Ivy in .venv$suffix" "run 'make setup'"
    [ -z "${IVY_SETTINGS:-}" ] || settings=(-settings "$IVY_SETTINGS")
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" "${versions[@]}" -jar "$ivy" ${settings[@]+"${settings[@]}"} -cache "$PWD/$1/cache" -ivy "$list" \
        -confs "${parts[@]}" -retrieve "$PWD/$1/[conf]/[artifact]-[revision].[ext]" >"$1/log" 2>&1 && return
    grep -E 'ERROR|WARN|Exception|FAILED|not found' "$1/log" | tail -n 15 >&2 || tail -n 15 "$1/log" >&2
    stop "the jars could not be fetched" "the lines above say what failed; for a proxy or a mirror see the top of tools/jars.sh, else run 'make jars' again"
}

check() { # that a folder has exactly the jars of the list of checksums, byte for byte
    sums "$1" | diff "$checksums" - >&2 && return
    stop "what was fetched is not what $checksums lists ('<' is the list, '>' what was fetched)" \
        "run it again; after a change of $list run it with 'lock' and look at the diff"
}

locking=${1:-}
stamp=$folder/made-from
if [ -z "$locking" ] && [ "$(wanted)" = "$(cat "$stamp" 2>/dev/null)" ]; then exit 0; fi

mkdir -p "$folder"
scratch=$(mktemp -d "$folder/fetching.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
say "fetching the jars of $list into $folder ($size, a minute or two)"
fetch "$scratch"
if [ "$locking" = lock ]; then sums "$scratch" >"$checksums"; fi
check "$scratch"
rm -f "$stamp"
for part in "${parts[@]}"; do
    rm -rf "${folder:?}/$part"
    mv "$scratch/$part" "$folder/"
done
wanted >"$stamp"
say "done"

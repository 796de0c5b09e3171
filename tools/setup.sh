#!/usr/bin/env bash
# Creates .venv with the packages of requirements.lock, and checks the versions of Python and Java. If .venv is up to date, it does nothing.
# PYTHON and JAVA_HOME choose the interpreter and Java; for root on Debian or Ubuntu, apt-get installs what is missing.
# SPARK chooses another Spark of tools/spark/versions, with an environment of its own: .venv-spark-4.2.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/spark/chosen.sh
venv=.venv$suffix
locks=(requirements.lock)
[ -z "$suffix" ] || locks=("tools/spark/$spark.lock" requirements.lock)

say() { echo "setup: $*" >&2; }

stop() { # what is wrong, a hint
    printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
    exit 2
}

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() { # the first of these packages that can be installed
    local package
    apt-get update -qq </dev/null >/dev/null || say "apt-get update failed"
    for package; do
        say "installing $package with apt-get"
        if DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" </dev/null >/dev/null; then return; fi
    done
    stop "apt-get could not install $*" "run 'apt-get update && apt-get install $1' to see why"
}

python_will_do() { "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

find_python() { # prints the interpreter: PYTHON if it is set, else the first that is new enough
    local candidate candidates=(python3 python3.13 python3.12 python3.11 python3.10)
    [ -z "${PYTHON:-}" ] || candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        if python_will_do "$candidate"; then echo "$candidate"; return; fi
    done
    return 1
}

java_command() { echo "${JAVA_HOME:+$JAVA_HOME/bin/}java"; } # as Spark chooses it

java_version() { # prints the major version, or 0 without Java: 'version "17.0.15"' is 17, 'version "1.8.0_402"' is 1
    local version
    version=$("$(java_command)" -version 2>&1 | sed -n 's/^.* version "\([0-9]*\).*/\1/p' | head -n 1) || true
    echo "${version:-0}"
}

check_java() {
    [ "$(java_version)" -lt 17 ] || return 0
    if [ -z "${JAVA_HOME:-}" ] && can_apt; then
        apt_install openjdk-17-jre-headless openjdk-21-jre-headless # Debian 13 does not have 17
        hash -r
    fi
    local version found hint
    version=$(java_version)
    [ "$version" -lt 17 ] || return 0
    found="'$(java_command)' is Java $version"
    [ "$version" != 0 ] || found="'$(java_command)' is missing or does not run"
    hint="install it (Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) or set JAVA_HOME to one"
    stop "Java 17 or later is needed, and $found" "$hint"
}

locked() { # prints the pins of all locks; of a package that two of them pin, those of the first
    awk '/^[^ #]/ { split($1, pin, "=="); other = pin[1] in file && file[pin[1]] != FILENAME; if (!other) file[pin[1]] = FILENAME }
        !other' "${locks[@]}"
}

make_environment() {
    local python=$1 install=("$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input)
    say "creating $venv with $("$python" -V) and the packages of ${locks[*]} (a minute or two)"
    "$python" -m venv --clear "$venv"
    locked >"$venv/requirements.lock"
    # pyspark comes as source. Building it in isolation would fetch an unpinned setuptools, so the locked one is installed first.
    sed -n '/^setuptools==/,/[^\\]$/p' "$venv/requirements.lock" >"$venv/setuptools.lock"
    "${install[@]}" --require-hashes -r "$venv/setuptools.lock"
    "${install[@]}" --require-hashes --use-pep517 --no-build-isolation -r "$venv/requirements.lock"
    "${install[@]}" --no-deps --no-build-isolation -e .
}

has_chosen_python() { # without PYTHON, any Python that the environment was created with, if it still runs
    local version
    version=$("$venv/bin/python" -V 2>/dev/null) && [ "$version" = "$("${PYTHON:-$venv/bin/python}" -V 2>&1)" ]
}

check_java
stamp=$venv/made-from
made_from="$(cat "${locks[@]}" pyproject.toml | cksum) $PWD" # $PWD: a virtual environment cannot be moved
if [ "$made_from" = "$(cat "$stamp" 2>/dev/null)" ] && has_chosen_python; then exit 0; fi

if ! python=$(find_python); then
    if [ -z "${PYTHON:-}" ] && can_apt; then apt_install python3-venv; fi
    python=$(find_python) || stop "Python 3.10 or later with its 'venv' module is needed, and '${PYTHON:-python3}' is not that" \
        "install it (Debian, Ubuntu: sudo apt-get install python3-venv; macOS: brew install python) or give one: make run PYTHON=/path/to/python3.12"
fi
make_environment "$python"
echo "$made_from" >"$stamp"
say "done"

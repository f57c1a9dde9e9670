#!/bin/sh
# Install the packages of requirements.lock into .venv, and kfbench itself in place. `make` runs this before everything.
# `setup.sh report` installs only those that requirements-report.txt names.
# Copies of the lock's lines and of pyproject.toml in .venv show that a set-up has finished.
set -eu
cd "$(dirname "$0")/.."

fail() {
    printf 'set-up: %s\n' "$*" >&2
    exit 1
}

new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

find_python() {
    tried=
    bare=
    for candidate in "$@"; do
        version=$("$candidate" -c 'import platform; print(platform.python_version())' 2>/dev/null) || continue
        tried="${tried:+$tried, }$candidate is $version"
        "$candidate" -c "$new_enough" || continue
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            python=$candidate
            return
        fi
        bare=$candidate
    done
    if [ -n "$bare" ]; then
        fail "$bare lacks venv or ensurepip; install them (Debian, Ubuntu: apt install python3-venv) and run make again"
    fi
    fail "Python 3.11 or newer is needed (${tried:-none found}); install it, or name one: make PYTHON=/path/to/python ..."
}

if ! .venv/bin/python -c "$new_enough" 2>/dev/null || ! [ -e .venv/bin/pip ]; then
    if [ -n "${PYTHON:-}" ]; then
        find_python "$PYTHON"
    else
        find_python python3 python3.14 python3.13 python3.12 python3.11
    fi
    rm -rf .venv
    "$python" -m venv .venv || fail "$python -m venv .venv failed"
fi

lock=requirements.lock
if [ "${1:-}" = report ] && ! cmp -s $lock .venv/kfbench.lock; then
    names=$(paste -sd '|' requirements-report.txt)
    lock=.venv/report.lock
    sed -nE "/^($names)==/,/[^\\]\$/p" requirements.lock > $lock
fi

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_USER=0

install() {
    .venv/bin/python -m pip install --quiet --progress-bar off "$@"
}

# Install the packages of these lines of the lock.
install_locked() {
    lines=$1
    shift
    sed -nE "$lines" $lock | install --require-hashes --no-deps "$@" -r /dev/stdin
}

# The lock is complete, so nothing is resolved: with --no-deps a release newer than the lock cannot break the set-up.
# pyspark has no wheel. It would be built with whatever setuptools is newest; the locked one goes first instead.
install_with_uv() {
    install_locked '/^(setuptools|uv)==/,/[^\\]$/p' --only-binary uv &&
        .venv/bin/python tools/uv_with_pip_settings.py pip install --quiet --python .venv/bin/python --compile-bytecode \
            --require-hashes --no-deps --no-build-isolation -r $lock
}

install_with_pip() {
    install_locked '/^setuptools==/,/[^\\]$/p' &&
        install_locked '/^uv==/,/[^\\]$/!p' --no-build-isolation --use-pep517
}

if ! cmp -s $lock .venv/kfbench.lock; then
    echo "set-up: installing the locked packages into .venv (a minute or more the first time)" >&2
    if ! install_with_uv 2> .venv/kfbench.uv; then
        echo "set-up: uv failed (.venv/kfbench.uv says why); pip installs the packages instead, which takes some minutes" >&2
        install_with_pip || fail "the locked packages could not be installed; see pip's message above"
    fi
    cp $lock .venv/kfbench.lock
fi

# The path is part of the copy, because an editable install points at its folder.
if ! { pwd && cat pyproject.toml; } | cmp -s - .venv/kfbench.project; then
    install --no-deps --no-build-isolation --editable . ||
        fail "kfbench itself could not be installed; see pip's message above"
    # A path relative to site-packages: under LC_ALL=C, Python 3.11 and 3.12 do not start with a .pth file that is not
    # ASCII, and the path of this checkout may not be ASCII.
    for pth in .venv/lib/python3*/site-packages/_editable_impl_kfbench.pth; do
        [ -f "$pth" ] || fail "the editable installation of kfbench has no $pth"
        echo ../../../.. > "$pth"
    done
    { pwd && cat pyproject.toml; } > .venv/kfbench.project
fi

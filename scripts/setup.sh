#!/bin/sh
# Makes the virtual environment from the lock file; as root it first installs missing packages.
set -eu
PYTHON=${PYTHON:-python3}

say() { echo "setup: $*" >&2; }

if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    say "$PYTHON is missing or older than 3.11; name another one: make PYTHON=python3.12 ..."
    exit 1
fi

if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "installing python3-venv"
        apt-get -qq update
        apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends python3-venv >/dev/null
    else
        say "Python's venv module is missing; install it (Debian: apt install python3-venv)"
        exit 1
    fi
fi

"$PYTHON" -m venv .venv
say "installing the locked dependencies into .venv"
pip() { .venv/bin/python -m pip --quiet --disable-pip-version-check "$@"; }
pip install --no-compile --require-hashes -r requirements.lock
# pip would compile files one by one, and the packages' own tests, of which some do not compile.
.venv/bin/python -m compileall -q -j 0 -x '/tests?/' .venv/lib >/dev/null 2>&1 || true
pip install --no-deps --no-build-isolation -e .
touch .venv/.ready
say "done"

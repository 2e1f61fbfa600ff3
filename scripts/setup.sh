#!/bin/sh
# Makes the virtual environment from the lock files, with uv, or with pip where there is no uv.
# `setup.sh demo` installs what `make demo` needs, `setup.sh all` the rest. As root it installs what
# the system lacks for it.
set -eu
PYTHON=${PYTHON:-python3}
UV_VERSION=$(sed -n 's/^uv==\([^ ]*\).*/\1/p' requirements-uv.lock)
UV_FOLDER=build/uv-$UV_VERSION

say() { echo "setup: $*" >&2; }

check_python() {
    if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        say "$PYTHON is missing or older than 3.11; name another one: make PYTHON=python3.12 ..."
        exit 1
    fi
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || install_venv
}

install_venv() {
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        say "Python's venv module is missing; install it (Debian: apt install python3-venv)"
        exit 1
    fi
    say "installing python3-venv"
    apt-get -qq update
    apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends python3-venv >/dev/null
}

pip() { .venv/bin/python -m pip --quiet --disable-pip-version-check "$@"; }

# Prints the uv to use: the one on the path, or else the locked one.
find_uv() {
    if uv --version >/dev/null 2>&1; then
        echo uv
    elif "$UV_FOLDER/bin/uv" --version >/dev/null 2>&1 || fetch_uv; then
        echo "$UV_FOLDER/bin/uv"
    else
        say "uv $UV_VERSION cannot be had here; pip installs, which takes longer"
    fi
}

fetch_uv() {
    say "downloading uv $UV_VERSION"
    rm -rf "$UV_FOLDER"
    pip install --no-deps --require-hashes --only-binary :all: --target "$UV_FOLDER" \
        -r requirements-uv.lock >/dev/null 2>&1 && "$UV_FOLDER/bin/uv" --version >/dev/null 2>&1
}

install() { # ARGUMENT...
    if [ -n "$uv" ]; then
        .venv/bin/python -m scripts.uv_like_pip \
            "$uv" pip install --quiet --python .venv/bin/python "$@" && return
        say "uv failed; pip installs, which takes longer"
        uv=
    fi
    pip install --no-compile "$@"
}

install_for_demo() {
    mkdir -p build
    .venv/bin/python -m deploy.locked requirements.lock >build/demo.lock
    .venv/bin/python -m deploy.locked requirements.lock demo >>build/demo.lock
    say "installing what the demo needs into .venv"
    install --require-hashes -r build/demo.lock
}

# The compilation uses all CPUs, and leaves out the packages' own tests: some do not compile.
install_all() {
    say "installing the locked dependencies into .venv"
    install --require-hashes -r requirements.lock
    .venv/bin/python -m compileall -q -j 0 -x '/tests?/' .venv/lib >/dev/null 2>&1 || true
    install --no-deps --no-build-isolation -e .
}

case $1 in
demo)
    check_python
    "$PYTHON" -m venv .venv
    uv=$(find_uv)
    install_for_demo
    touch .venv/.demo
    ;;
all)
    uv=$(find_uv)
    install_all
    touch .venv/.ready
    ;;
esac
say "done"

#!/bin/sh
# Builds dist/xco_VERSION_ARCH.deb: xco, its compiled core, and the libraries that the xtc package lacks.
set -eu
umask 022
cd "$(dirname "$0")/../.."
SOURCE=deploy/debian
WORK=build/deb-xco
ROOT=$WORK/root
LIB=$ROOT/usr/lib/xco
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(dpkg-parsechangelog -l $SOURCE/changelog -S Timestamp)}"

# Without these the core would be built without its classifier, and hosts would fall back to u32.
lacks() { echo "build-xco: $1 is missing: apt install gcc make libsodium-dev libbpf-dev clang" >&2; exit 1; }
command -v "${CLANG:-clang}" >/dev/null || lacks clang
echo '#include <bpf/libbpf.h>' | "${CC:-cc}" -E -x c -o /dev/null - 2>/dev/null || lacks libbpf-dev

BIN=.venv/bin
VERSION=$($BIN/python -c 'import xtc; print(xtc.__version__)')
ARCH=$(dpkg --print-architecture)
MINOR=$(/usr/bin/python3 -c 'import sys; print(sys.version_info.minor)')
DEB=dist/xco_${VERSION}_$ARCH.deb

# One build at a time.
mkdir -p build && exec 9>build/deb-xco.lock && flock 9

# 1. The compiled core, rebuilt and hardened: xco/core/build may be a developer's.
rm -rf "$ROOT" $WORK/core && mkdir -p "$LIB/python/xco_core" dist
flags() { DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get "$1"; }
# These options of Debian's would conflict: the core sets position-independent code itself.
MAKEFLAGS='' make -s -C xco/core BUILD="$PWD/$WORK/core" CFLAGS="$(flags CFLAGS) -fPIC" \
    CPPFLAGS="$(flags CPPFLAGS)" LDFLAGS="$(flags LDFLAGS)"
CORE=$LIB/python/xco_core
install -m 644 xco/core/xco_core/__init__.py $WORK/core/libxcosched.so "$CORE"
install -m 755 $WORK/core/xco-controller $WORK/core/xco-coordinator "$CORE"
strip --strip-unneeded "$CORE/libxcosched.so"
strip "$CORE/xco-controller" "$CORE/xco-coordinator"
install -m 644 $WORK/core/gate_classify.bpf.o $WORK/core/shim.bpf.o "$CORE"

# 2. xco and its libraries: exactly those of the lock file, for the system's Python.
$BIN/python -m deploy.locked requirements.lock lease >$WORK/requirements.txt
pip() { $BIN/python -m pip --disable-pip-version-check --quiet "$@"; }
pip wheel --no-deps --no-build-isolation --wheel-dir $WORK .
# Without dependencies: the xtc package has some of them already.
pip install --target "$LIB/python" --python-version "3.$MINOR" --only-binary :all: --no-compile \
    --no-deps --require-hashes --requirement $WORK/requirements.txt
$BIN/python -m zipfile -e "$WORK/xtc-$VERSION-py3-none-any.whl" $WORK/wheel
cp -R $WORK/wheel/xco "$LIB/python/xco"
rm -rf "$LIB/python/bin" $WORK/wheel
find "$LIB/python" -path '*/xco_core' -prune -o -name '*.so*' ! -path '*.libs/*' -exec strip --strip-unneeded {} +
find "$LIB/python" -path '*/xco_core' -prune -o \
    '(' -type d -exec chmod 755 {} + ')' -o '(' -type f -exec chmod 644 {} + ')'

# 3. Program, unit files, the starting settings.
install -D -m 755 $SOURCE/xco/xco "$ROOT/usr/bin/xco"
install -D -m 644 -t "$ROOT/lib/systemd/system" \
    deploy/systemd/xco-controller.service deploy/systemd/xco-coordinator.service \
    deploy/systemd/xco-port-agent.service
install -D -m 644 -t "$ROOT/etc/xtc" deploy/etc/xco.toml

# 4. Documents, alert rules, an example, and completion, which the program generates.
$BIN/python -m deploy.manpages $WORK/man
for page in xco.8 xco.toml.5; do
    install -D -m 644 "$WORK/man/$page" "$ROOT/usr/share/man/man${page##*.}/$page"
    gzip -9n "$ROOT/usr/share/man/man${page##*.}/$page"
done
complete() { # SHELL FILE
    mkdir -p "$ROOT/usr/share/$(dirname "$2")"
    _XCO_COMPLETE="source_$1" $BIN/python -c \
        'import sys; sys.argv = ["xco"]; from xco.cli.main import main; main()' >"$ROOT/usr/share/$2"
}
complete bash bash-completion/completions/xco
complete zsh zsh/vendor-completions/_xco
complete fish fish/vendor_completions.d/xco.fish
DOC=$ROOT/usr/share/doc/xco
install -D -m 644 -t "$DOC" $SOURCE/copyright
install -D -m 644 -t "$DOC/examples" deploy/etc/topology-example.toml deploy/prometheus/xco.yml
gzip -9nc $SOURCE/changelog >"$DOC/changelog.gz"
install -D -m 644 $SOURCE/xco/lintian-overrides "$ROOT/usr/share/lintian/overrides/xco"

# 5. Metadata for dpkg.
CONTROL=$ROOT/DEBIAN
install -D -m 755 -t "$CONTROL" $SOURCE/xco/postinst $SOURCE/xco/prerm $SOURCE/xco/postrm
echo /etc/xtc/xco.toml >"$CONTROL/conffiles"
(cd "$ROOT" && find usr lib -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$CONTROL/md5sums"
mkdir -p $WORK/debian && echo 'Source: xtc' >$WORK/debian/control
# Libraries bundled in a wheel (NAME.libs) need no system package.
SHLIBS=$(cd $WORK && find root/usr/lib/xco/python '(' -name '*.so*' -o -name 'xco-co*' ')' \
    ! -path '*.libs/*' -print0 |
    xargs -0 dpkg-shlibdeps -O --warnings=0 --ignore-missing-info | sed 's/^shlibs:Depends=//')
sed -e "s/@VERSION@/$VERSION/g; s/@ARCH@/$ARCH/; s/@SHLIBS@/$SHLIBS/" \
    -e "s/@PYTHON@/3.$MINOR/; s/@NEXT@/3.$((MINOR + 1))/" \
    -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$ROOT" | cut -f1)/" \
    $SOURCE/xco/control.in >"$CONTROL/control"
dpkg-deb --root-owner-group -Zxz -z1 --build "$ROOT" "$DEB" >/dev/null
echo "$DEB"

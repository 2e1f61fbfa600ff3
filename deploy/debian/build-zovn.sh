#!/bin/sh
# Builds dist/zovn_VERSION_ARCH.deb: zovn and its compiled core; its libraries are the xtc package's.
set -eu
umask 022
cd "$(dirname "$0")/../.."
SOURCE=deploy/debian
WORK=build/deb-zovn
ROOT=$WORK/root
LIB=$ROOT/usr/lib/zovn/python
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(dpkg-parsechangelog -l $SOURCE/changelog -S Timestamp)}"

# Without these the core would be built without its switch for guests.
lacks() { echo "build-zovn: $1 is missing: apt install gcc make pkg-config libdpdk-dev" >&2; exit 1; }
command -v "${PKG_CONFIG:-pkg-config}" >/dev/null || lacks pkg-config
"${PKG_CONFIG:-pkg-config}" --exists libdpdk || lacks libdpdk-dev

BIN=.venv/bin
VERSION=$($BIN/python -c 'import xtc; print(xtc.__version__)')
ARCH=$(dpkg --print-architecture)
MINOR=$(/usr/bin/python3 -c 'import sys; print(sys.version_info.minor)')
DEB=dist/zovn_${VERSION}_$ARCH.deb

# One build at a time.
mkdir -p build && exec 9>build/deb-zovn.lock && flock 9

# 1. zovn; the folders of the core are where it looks for them.
rm -rf "$ROOT" $WORK/core $WORK/wheel && mkdir -p "$LIB" dist
$BIN/python -m pip --disable-pip-version-check --quiet wheel --no-deps --no-build-isolation \
    --wheel-dir $WORK .
$BIN/python -m zipfile -e "$WORK/xtc-$VERSION-py3-none-any.whl" $WORK/wheel
cp -R $WORK/wheel/zovn "$LIB/zovn"
rm -rf $WORK/wheel

# 2. The compiled core, rebuilt and hardened: zovn/core/build may be a developer's.
flags() { DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get "$1"; }
# These options of Debian's would conflict: the core sets position-independent code itself.
build() { # FOLDER OUTPUT
    MAKEFLAGS='' make -s -C "$1" BUILD="$PWD/$2" CFLAGS="$(flags CFLAGS) -fPIC" \
        CPPFLAGS="$(flags CPPFLAGS)" LDFLAGS="$(flags LDFLAGS)"
}
build zovn/core $WORK/core
build zovn/core/simulate $WORK/core/simulate
CORE=$LIB/zovn/core/build
install -D -m 644 -t "$CORE" $WORK/core/libzovn.so
install -D -m 755 -t "$CORE" $WORK/core/zovn-switch
install -D -m 755 -t "$LIB/zovn/core/simulate/build" $WORK/core/simulate/zovn-simulate
strip --strip-unneeded "$CORE/libzovn.so"
strip "$CORE/zovn-switch" "$LIB/zovn/core/simulate/build/zovn-simulate"

# 3. Program, unit files, the starting settings.
install -D -m 755 $SOURCE/zovn/zovn "$ROOT/usr/bin/zovn"
install -D -m 644 -t "$ROOT/lib/systemd/system" \
    deploy/systemd/zovn-switch.service deploy/systemd/zovn-exporter.service
install -D -m 644 -t "$ROOT/etc/xtc" deploy/etc/zovn.toml

# 4. Documents, alert rules, and completion, which the program generates.
$BIN/python -m deploy.manpages $WORK/man
for page in zovn.8 zovn.toml.5; do
    install -D -m 644 "$WORK/man/$page" "$ROOT/usr/share/man/man${page##*.}/$page"
    gzip -9n "$ROOT/usr/share/man/man${page##*.}/$page"
done
complete() { # SHELL FILE
    mkdir -p "$ROOT/usr/share/$(dirname "$2")"
    _ZOVN_COMPLETE="source_$1" $BIN/python -c \
        'import sys; sys.argv = ["zovn"]; from zovn.cli.main import main; main()' >"$ROOT/usr/share/$2"
}
complete bash bash-completion/completions/zovn
complete zsh zsh/vendor-completions/_zovn
complete fish fish/vendor_completions.d/zovn.fish
DOC=$ROOT/usr/share/doc/zovn
install -D -m 644 -t "$DOC" $SOURCE/copyright
install -D -m 644 -t "$DOC/examples" deploy/prometheus/zovn.yml
gzip -9nc $SOURCE/changelog >"$DOC/changelog.gz"
install -D -m 644 $SOURCE/zovn/lintian-overrides "$ROOT/usr/share/lintian/overrides/zovn"

# 5. Metadata for dpkg.
CONTROL=$ROOT/DEBIAN
install -D -m 755 -t "$CONTROL" $SOURCE/zovn/postinst $SOURCE/zovn/prerm $SOURCE/zovn/postrm
echo /etc/xtc/zovn.toml >"$CONTROL/conffiles"
(cd "$ROOT" && find usr lib -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$CONTROL/md5sums"
mkdir -p $WORK/debian && echo 'Source: xtc' >$WORK/debian/control
SHLIBS=$(cd $WORK && find root/usr/lib/zovn/python/zovn/core -type f -print0 |
    xargs -0 dpkg-shlibdeps -O --warnings=0 | sed 's/^shlibs:Depends=//')
sed -e "s/@VERSION@/$VERSION/g; s/@ARCH@/$ARCH/; s/@SHLIBS@/$SHLIBS/" \
    -e "s/@PYTHON@/3.$MINOR/; s/@NEXT@/3.$((MINOR + 1))/" \
    -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$ROOT" | cut -f1)/" \
    $SOURCE/zovn/control.in >"$CONTROL/control"
dpkg-deb --root-owner-group -Zxz -z1 --build "$ROOT" "$DEB" >/dev/null
echo "$DEB"

#!/bin/sh
# Builds dist/xtc_VERSION_ARCH.deb for the system's python3, with the locked libraries in it.
set -eu
umask 022
cd "$(dirname "$0")/../.."
SOURCE=deploy/debian
WORK=build/deb
ROOT=$WORK/root
LIB=$ROOT/usr/lib/xtc
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(dpkg-parsechangelog -l $SOURCE/changelog -S Timestamp)}"

BIN=.venv/bin
VERSION=$($BIN/python -c 'import xtc; print(xtc.__version__)')
ARCH=$(dpkg --print-architecture)
MINOR=$(/usr/bin/python3 -c 'import sys; print(sys.version_info.minor)')
DEB=dist/xtc_${VERSION}_$ARCH.deb

# One build at a time.
mkdir -p build && exec 9>build/deb.lock && flock 9

# 1. xtc and its libraries: exactly those of the lock file, for the system's Python.
rm -rf "$ROOT" && mkdir -p "$LIB" dist
$BIN/python -m deploy.locked requirements.lock >$WORK/requirements.txt
pip() { $BIN/python -m pip --disable-pip-version-check --quiet "$@"; }
pip wheel --no-deps --no-build-isolation --wheel-dir $WORK .
pip install --target "$LIB/python" --python-version "3.$MINOR" --only-binary :all: --no-compile \
    --require-hashes --requirement $WORK/requirements.txt
$BIN/python -m zipfile -e "$WORK/xtc-$VERSION-py3-none-any.whl" "$LIB/python"
rm -rf "$LIB/python/bin" "$LIB/python/lab" "$LIB/python/training" "$LIB/python/policer" "$LIB/python/xco"
find "$LIB/python" -name '*.so*' -exec strip --strip-unneeded {} +
# The file modes in wheels vary.
find "$LIB/python" '(' -type d -exec chmod 755 {} + ')' -o '(' -type f -exec chmod 644 {} + ')'

# 2. Programs, unit files, the starting configuration.
install -D -m 755 $SOURCE/xtc "$ROOT/usr/bin/xtc"
install -D -m 755 deploy/systemd/after-stop "$LIB/after-stop"
install -D -m 644 -t "$ROOT/lib/systemd/system" deploy/systemd/xtc.service deploy/systemd/xtc-release.service
install -D -m 644 -t "$ROOT/etc/xtc" deploy/etc/xtc.toml
install -d "$ROOT/etc/xtc/conf.d"

# 3. Documents and completion, which the program generates.
$BIN/python -m deploy.manpages $WORK/man
for page in xtc.8 xtc.toml.5; do
    install -D -m 644 "$WORK/man/$page" "$ROOT/usr/share/man/man${page##*.}/$page"
    gzip -9n "$ROOT/usr/share/man/man${page##*.}/$page"
done
complete() { # SHELL FILE
    mkdir -p "$ROOT/usr/share/$(dirname "$2")"
    _XTC_COMPLETE="source_$1" $BIN/xtc >"$ROOT/usr/share/$2"
}
complete bash bash-completion/completions/xtc
complete zsh zsh/vendor-completions/_xtc
complete fish fish/vendor_completions.d/xtc.fish
DOC=$ROOT/usr/share/doc/xtc
install -D -m 644 -t "$DOC" $SOURCE/copyright README.md SECURITY.md CHANGELOG.md
find docs -name '*.md' -exec cp --parents -t "$DOC" {} +
install -D -m 644 -t "$DOC/examples" deploy/systemd/libvirt-only.conf
gzip -9nc $SOURCE/changelog >"$DOC/changelog.gz"
install -D -m 644 $SOURCE/lintian-overrides "$ROOT/usr/share/lintian/overrides/xtc"

# 4. Metadata for dpkg.
CONTROL=$ROOT/DEBIAN
install -D -m 755 -t "$CONTROL" $SOURCE/postinst $SOURCE/prerm $SOURCE/postrm
echo /etc/xtc/xtc.toml >"$CONTROL/conffiles"
(cd "$ROOT" && find usr lib -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$CONTROL/md5sums"
mkdir -p $WORK/debian && echo 'Source: xtc' >$WORK/debian/control
SHLIBS=$(cd $WORK && find root/usr/lib/xtc/python -name '*.so*' -print0 |
    xargs -0 dpkg-shlibdeps -O --ignore-missing-info | sed 's/^shlibs:Depends=//')
sed -e "s/@VERSION@/$VERSION/; s/@ARCH@/$ARCH/; s/@SHLIBS@/$SHLIBS/" \
    -e "s/@PYTHON@/3.$MINOR/; s/@NEXT@/3.$((MINOR + 1))/" \
    -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$ROOT" | cut -f1)/" $SOURCE/control.in >"$CONTROL/control"
dpkg-deb --root-owner-group -Zxz -z1 --build "$ROOT" "$DEB" >/dev/null
echo "$DEB"

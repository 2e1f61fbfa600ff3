"""The files of one private libvirtd: their paths, and the configuration."""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab.errors import BadRequestError

MAX_SOCKET_PATH: Final = 107
"""Maximum bytes of a unix socket's path (unix(7))."""

PRIVATE: Final = {
    "run": "/run/libvirt",
    "lib": "/var/lib/libvirt",
    "cache": "/var/cache/libvirt",
    "log": "/var/log/libvirt",
    "etc": "/etc/libvirt",
}
"""Folders of the private libvirtd, by the system folder that each replaces."""

HIDDEN: Final = ("/run/dbus", "/run/systemd")
"""Empty for the private libvirtd, so that it does not register its guests with systemd."""

_ACCOUNT: Final = "libvirt-qemu"
_LIBVIRTD: Final = """\
listen_tls = 0
listen_tcp = 0
unix_sock_dir = "{sockets}"
unix_sock_rw_perms = "0700"
auth_unix_ro = "none"
auth_unix_rw = "none"
log_outputs = "2:file:{log}/libvirtd.log"
host_uuid = "{uuid}"
"""
_QEMU: Final = """\
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
namespaces = []
stdio_handler = "file"
"""
_LXC: Final = """\
security_driver = "none"
"""


@dataclass(frozen=True, slots=True)
class Layout:
    """The folder of one private libvirtd.

    Raises:
        BadRequestError: the folder's path is too long for sockets in it.
    """

    folder: Path

    def __post_init__(self) -> None:
        if len(str(self.sockets / "libvirt-admin-sock").encode()) > MAX_SOCKET_PATH:
            raise BadRequestError("folder", str(self.folder), "a path short enough for sockets")

    @property
    def sockets(self) -> Path:
        """Where libvirtd listens, outside its private folders."""
        return self.folder / "s"

    @property
    def socket(self) -> Path:
        """The socket for clients with write access."""
        return self.sockets / "libvirt-sock"

    @property
    def config(self) -> Path:
        """The configuration of libvirtd itself."""
        return self.folder / "libvirtd.conf"

    @property
    def pid_file(self) -> Path:
        """The file that prevents a second libvirtd in this folder."""
        return self.folder / "libvirtd.pid"

    @property
    def log(self) -> Path:
        """The log of libvirtd."""
        return self.folder / "log" / "libvirtd.log"

    @property
    def output(self) -> Path:
        """The standard error of libvirtd."""
        return self.folder / "output"

    def write(self) -> None:
        """Create the folders and the configuration, with a separate identity for this libvirtd."""
        for name in (*PRIVATE, self.sockets.name):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        log, identity = self.folder / "log", uuid.uuid4()
        self.config.write_text(_LIBVIRTD.format(sockets=self.sockets, log=log, uuid=identity))
        (self.folder / "etc" / "qemu.conf").write_text(_QEMU)
        (self.folder / "etc" / "lxc.conf").write_text(_LXC)
        for name, entry in (("passwd", "64055:64055::/:/usr/sbin/nologin"), ("group", "64055:")):
            text = Path("/etc", name).read_text()
            (self.folder / name).write_text(with_account(text, entry))


def with_account(text: str, entry: str) -> str:
    """Return /etc/passwd or /etc/group with the account that Debian's QEMU driver looks up.

    It does so even if QEMU runs as root; Debian's libvirt-daemon-system creates the account.
    """
    if any(line.startswith(f"{_ACCOUNT}:") for line in text.splitlines()):
        return text
    return f"{text.rstrip()}\n{_ACCOUNT}:x:{entry}\n"

"""Read the list of hosts that a fleet sweeps: one TOML file, with all keys checked."""

import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated

import msgspec
from msgspec import Meta

from models import ModelFileError
from models.explain import explain
from models.hostfile import read_tables
from training.errors import FleetFileError

MAX_BYTES = 1 << 20
"""A thousand hosts take 200 KB; a larger file is not a list of hosts."""
MAX_HOSTS = 1000
RESERVED = "index"
"""Name of the page of all hosts."""
CHOSEN = ("--output", "-o", "--json")
"""Options of a sweep that the fleet sets itself, or relies on."""
REMOTE_SHELLS = frozenset({"ssh"})
"""Programs that join their arguments with spaces, for a remote shell to split again."""

_Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")]
_Word = Annotated[str, Meta(pattern=r"^[^\0]*\Z", max_length=4096)]
_Words = Annotated[tuple[_Word, ...], Meta(max_length=200)]
_Command = Annotated[str, Meta(pattern=r"^[^\0]+\Z", max_length=4096)]


class FleetHost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One host: how to run commands on it, and what its sweep measures."""

    name: Annotated[
        _Name,
        Meta(
            description="a name of 1 to 64 letters, digits and . _ -, "
            "the first a letter or a digit",
            examples=['"edge-7"'],
        ),
    ]
    sweep: Annotated[
        _Words,
        Meta(
            description="the options of `xtc-train sweep`, a list of words",
            examples=['["--router", "gold", "--budget", "5min"]'],
        ),
    ]
    run: Annotated[
        _Words,
        Meta(
            description="what each command there begins with, a list of words",
            examples=['["ssh", "edge-7"]'],
        ),
    ] = ()
    command: Annotated[
        _Command,
        Meta(
            description="the path of xtc-train on the host", examples=['"/opt/xtc/bin/xtc-train"']
        ),
    ] = "xtc-train"

    @property
    def remote_csv(self) -> str:
        """The recording on the host, in the working directory of its commands."""
        return f"xtc-train-{self.name}.csv"

    @property
    def sweeping(self) -> tuple[str, ...]:
        """The words of the sweep command, as they must arrive on the host."""
        return (self.command, "sweep", *self.sweep, "--output", self.remote_csv)

    def there(self, words: tuple[str, ...]) -> list[str]:
        """Return the command that runs these words on the host.

        ssh joins its arguments with spaces, and the remote shell splits them again: one word would
        become several, and the shell would interpret `$` or `;`. Each word is quoted for that
        shell. Other prefixes (sudo, docker exec) pass their arguments on unchanged.
        """
        remote = bool(self.run) and PurePosixPath(self.run[0]).name in REMOTE_SHELLS
        return [*self.run, *(map(shlex.quote, words) if remote else words)]


class FleetDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    host: Annotated[
        Annotated[tuple[FleetHost, ...], Meta(min_length=1, max_length=MAX_HOSTS)],
        Meta(description=f"1 to {MAX_HOSTS} hosts, each a [[host]] table with name and sweep"),
    ]


def load_fleet(path: Path) -> tuple[FleetHost, ...]:
    """Read the list of hosts.

    Raises:
        FleetFileError: the file cannot be read or used; it names the field and the fix.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        problem = getattr(error, "strerror", None) or str(error)
        fix = "give the path of a list of hosts that this user may read"
        raise FleetFileError(str(path), "file", problem, fix) from error
    if len(content) > MAX_BYTES:
        fix = f"a list of hosts has at most {MAX_BYTES} bytes"
        raise FleetFileError(str(path), "file", "too large", fix)
    return parse_fleet(content, str(path))


def parse_fleet(content: bytes, source: str) -> tuple[FleetHost, ...]:
    """Read the content of a list of hosts; ``source`` is its name in errors.

    Raises:
        FleetFileError: the content cannot be used; it names the field and the fix.
    """
    try:
        hosts = _document(content, source).host
    except ModelFileError as error:
        raise FleetFileError(source, error.field, error.problem, error.fix) from error
    for field, problem, fix in _mistakes(hosts):
        raise FleetFileError(source, field, problem, fix)
    return hosts


def _document(content: bytes, source: str) -> FleetDocument:
    raw = read_tables(content, source)
    try:
        return msgspec.convert(raw, FleetDocument)
    except msgspec.ValidationError as error:
        raise explain(source, raw, error, FleetDocument) from error


def _mistakes(hosts: tuple[FleetHost, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield violations that the types cannot express, as field, problem and fix."""
    times = Counter(host.name for host in hosts)
    for number, host in enumerate(hosts):
        where = f"host[{number}]"
        if times[host.name] > 1:
            problem = f'"{host.name}" is the name of {times[host.name]} hosts'
            yield f"{where}.name", problem, "give each host a name of its own"
        if host.name == RESERVED:
            fix = f"give another name: {RESERVED}.html is the page of all hosts"
            yield f"{where}.name", f'"{RESERVED}" is taken', fix
        if host.run and not host.run[0]:
            fix = "begin with a program, or leave run out for this machine"
            yield f"{where}.run", "begins with an empty word", fix
        for place, word in enumerate(host.sweep):
            if _is_chosen(word):
                fix = "remove it: the fleet chooses the output, and reads the progress of the sweep"
                yield f"{where}.sweep[{place}]", f"{word} is not for a list of hosts", fix


def _is_chosen(word: str) -> bool:
    return word.partition("=")[0] in CHOSEN or (word[:2] == "-o" and len(word) > len("-o"))

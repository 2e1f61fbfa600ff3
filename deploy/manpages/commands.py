"""xtc(8), policer(8), xco(8) and zovn(8), generated from the command lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common import __version__
from deploy.manpages import roff

Command = Any
"""A command or parameter of typer, where its classes are not part of the interface."""


@dataclass(frozen=True, slots=True)
class Program:
    """Parts of a page that are not in the command line."""

    name: str
    purpose: str
    files: Mapping[str, str]
    status: Mapping[str, str]
    signals: Mapping[str, str]
    see: tuple[tuple[str, int], ...]
    """Other pages, with their sections."""


XTC = Program(
    name="xtc",
    purpose="hold virtual routers at their promised packet rates",
    files={
        "/etc/xtc/xtc.toml": "the configuration, see xtc.toml(5)",
        "/etc/xtc/conf.d/*.toml": "drop-ins, laid over it in the order of their names",
        "/var/lib/xtc/journal": "what stood before each cap; leases; the highest epoch",
        "/run/xtc/manager.sock, /run/xtc/telemetry.sock": "the daemon's local sockets",
    },
    status={
        "0": "done",
        "1": "refused or failed",
        "2": "wrong usage or configuration",
        "3": "no daemon answers",
        "4": "the daemon ended because its state directory was taken over",
    },
    signals={
        "SIGTERM, SIGINT": "ends the daemon, which puts back what stood before its caps, or keeps "
        "them: `daemon.on_exit` in xtc.toml(5)",
        "SIGHUP": "reads the routers of the configuration and the CURVE keys again",
    },
    see=(("xtc.toml", 5), ("policer", 8)),
)
POLICER = Program(
    name="policer",
    purpose="keep a fleet of virtual routers at their contracts",
    files={
        "/etc/xtc/policer.toml": "the settings, see policer.toml(5)",
        "/var/lib/xtc-policer/policer.db": "contracts, events, tokens and punishments",
    },
    status={
        "0": "done",
        "1": "refused or failed",
        "2": "wrong usage or configuration",
        "3": "no policer answers",
    },
    signals={
        "SIGTERM, SIGINT": "ends the policer; what it told the daemons ends with its leases",
        "SIGHUP": "reads the settings again; those of `[server]`, `[store]`, `[link]` and "
        "`[lease]` take effect at the next start",
    },
    see=(("policer.toml", 5), ("xtc", 8)),
)
XCO = Program(
    name="xco",
    purpose="coordinate which V2V flows may send, so that no link is congested",
    files={
        "/etc/xtc/xco.toml": "settings of controller, coordinator, port agent: see xco.toml(5)",
        "/etc/xtc/topology.toml": "hosts, switches and links; `xco topology check` finds mistakes",
        "/etc/xtc/xco.key": "the controllers' master key; `xco key make` makes it",
        "/etc/xtc/xco-host.key": "the key of this host; `xco key host` makes it",
        "/etc/xtc/xco-agent.key": "the key of port agents; `xco key agent` makes it",
        "/var/lib/xco": "the lease, and the highest epochs that were given and obeyed",
        "/run/xco": "what controller, coordinator and port agent publish of themselves",
    },
    status={
        "0": "done",
        "1": "refused or failed",
        "2": "wrong usage or configuration",
        "3": "no controller, coordinator or port agent answers",
    },
    signals={
        "SIGTERM, SIGINT": "ends the controller, whose hosts then keep to their safe shares, or "
        "the coordinator, whose host's traffic then flows unshaped, or the port agent",
        "SIGHUP": "has the controller read settings and topology again",
    },
    see=(("xco.toml", 5), ("xtc", 8), ("policer", 8)),
)
ZOVN = Program(
    name="zovn",
    purpose="switch frames between guests and containers without loss",
    files={
        "/etc/xtc/zovn.toml": "the settings, see zovn.toml(5)",
        "/run/zovn/control.sock": "takes the commands to a running switch",
        "/run/zovn/NAME.sock": "where the front end of a port connects",
        "/run/zovn/control.conf": "the settings as the compiled program reads them",
    },
    status={
        "0": "done",
        "1": "refused or failed; for `zovn check`: packets can be lost",
        "2": "wrong usage or configuration",
        "3": "no switch answers",
    },
    signals={
        "SIGTERM, SIGINT": "ends the switch after what it took is delivered, within 100 ms for "
        "each port; or the exporter",
        "SIGHUP": "is ignored by the switch",
    },
    see=(("zovn.toml", 5), ("xtc", 8)),
)


def page(command: Command, date: str, program: Program = XTC) -> str:
    """Return a program's page (section 8) for the root of its command line."""
    return "".join(
        [
            roff.title(program.name, 8, date, __version__),
            roff.heading("Name"),
            rf"{program.name} \- {program.purpose}" + "\n",
            roff.heading("Synopsis"),
            f"{roff.bold(program.name)} {roff.italic('COMMAND')} [{roff.italic('OPTION')} ...]\n",
            roff.heading("Description"),
            f"{roff.inline(command.help)}\n",
            roff.heading("Options"),
            *map(_parameter, _shown(command)),
            roff.heading("Commands"),
            *(_command(words, one) for words, one in _leaves((program.name,), command)),
            _table("Signals", program.signals),
            _table("Exit status", program.status),
            _table("Environment", _environment(command)),
            _table("Files", program.files),
            roff.heading("See also"),
            ", ".join(f"{roff.bold(name)}({section})" for name, section in program.see) + "\n",
        ]
    )


def _leaves(words: tuple[str, ...], command: Command) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield every command except groups, with its words."""
    children = getattr(command, "commands", {})
    for name, child in sorted(children.items()):
        if not child.hidden:
            yield from _leaves((*words, name), child)
    if not children:
        yield words, command


def _shown(command: Command) -> list[Command]:
    return [parameter for parameter in command.params if not parameter.hidden]


def _command(words: Sequence[str], command: Command) -> str:
    parameters = _shown(command)
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    needed = [each for each in parameters if each.required and each not in arguments]
    synopsis = [roff.bold(" ".join(words)), *map(_argument, arguments)]
    synopsis += [f"{roff.bold(each.opts[0])} {_value(each)}" for each in needed]
    if len(parameters) > len(arguments) + len(needed):
        synopsis.append(f"[{roff.italic('OPTION')} ...]")
    return "".join(
        [
            roff.subheading(" ".join(words)),
            " ".join(synopsis) + "\n",
            *(f".PP\n{roff.inline(' '.join(text.split()))}\n" for text in _help(command)),
            *map(_parameter, parameters),
        ]
    )


def _help(command: Command) -> list[str]:
    return [text for text in (command.help or "").split("\n\n") if text.strip()]


def _argument(argument: Command) -> str:
    name = roff.italic(argument.name.upper())
    return name if argument.required else f"[{name}]"


def _value(option: Command) -> str:
    return roff.italic(option.name.upper())


def _parameter(parameter: Command) -> str:
    if parameter.param_type_name == "argument":
        term = _argument(parameter)
    else:
        term = ", ".join(map(roff.bold, [*parameter.opts, *parameter.secondary_opts]))
        term += "" if parameter.is_flag else f" {_value(parameter)}"
    return roff.entry(term, roff.inline(parameter.help or ""), _defaults(parameter))


def _defaults(parameter: Command) -> str:
    """Return an option's default and environment variable, if any."""
    words = []
    switch = getattr(parameter, "is_flag", False)
    if parameter.default is not None and not switch and not callable(parameter.default):
        words.append(f"default {roff.bold(str(parameter.default))}")
    if parameter.envvar:
        words.append(f"variable {roff.bold(parameter.envvar)}")
    return f"({', '.join(words)})" if words else ""


def _environment(command: Command) -> dict[str, str]:
    """Return the environment variables of options."""
    stands = {
        parameter.envvar: f"stands for `{parameter.opts[0]}`"
        for _, leaf in _leaves((), command)
        for parameter in _shown(leaf)
        if parameter.envvar
    }
    return dict(sorted(stands.items()))


def _table(name: str, rows: Mapping[str, str]) -> str:
    entries = (roff.entry(roff.bold(term), roff.inline(words)) for term, words in rows.items())
    return roff.heading(name) + "".join(entries)

"""Rates from two snapshots of a machine, and the rows that `xco top` shows."""

from collections.abc import Mapping
from typing import Any

import msgspec

from xco.cli.status import Machine

CONTROLLER_EVENTS = ("events_gave_up", "slices_started", "directives_sent", "received_reports")
COORDINATOR_EVENTS = ("given_up", "slices", "directives", "reports")


class HostRow(msgspec.Struct, frozen=True, kw_only=True):
    """A host as its controller sees it, over the time between two snapshots."""

    host: str
    mode: str
    backlog_bytes: int
    backlog_flows: int
    granted_bps: int
    granted_share: float
    """Share of the time; 1 is all of it."""
    rate_bps: int
    """Bytes sent, as the host reports them."""
    slices_per_s: float
    silent_ms: float
    fell_back: bool


class FlowRow(msgspec.Struct, frozen=True, kw_only=True):
    """A V2V flow as its coordinator sees it, over the time between two snapshots."""

    source: str
    destination: str
    host: str | None
    backlog_bytes: int
    granted_bps: int
    """Rate while its gate is open; 0 while it is closed."""
    rate_bps: int
    """Over a longer time: the loop reads the counters of flows only a few times in ten seconds."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One screen; events are per second."""

    controller: dict[str, Any] | None = None
    hosts: tuple[HostRow, ...] = ()
    coordinator: dict[str, Any] | None = None
    flows: tuple[FlowRow, ...] = ()
    silent: tuple[str, ...] = ()


def frame(before: Machine, after: Machine, long_before: Machine | None = None) -> Frame:
    """Return the rates between two snapshots, and those of flows since a third.

    A loop or flow that restarted in between counts from zero.
    """
    first = long_before or before
    seconds = max(after.at_ns - before.at_ns, 1) / 1e9
    long_seconds = max(after.at_ns - first.at_ns, 1) / 1e9
    return Frame(
        controller=_controller(before, after, seconds),
        hosts=_hosts(before.controller, after.controller, seconds),
        coordinator=_coordinator(before, after, seconds),
        flows=_flows(first.coordinator, after.coordinator, long_seconds),
        silent=after.silent,
    )


def busiest_first(shown: Frame) -> Frame:
    """Order hosts and flows: first those in trouble, then by backlog, largest first."""
    return msgspec.structs.replace(
        shown,
        hosts=tuple(sorted(shown.hosts, key=lambda row: (not row.fell_back, -row.backlog_bytes))),
        flows=tuple(sorted(shown.flows, key=lambda row: (-row.backlog_bytes, -row.rate_bps))),
    )


def _controller(before: Machine, after: Machine, seconds: float) -> dict[str, Any] | None:
    now = after.controller
    if now is None:
        return None
    loop = now["loop"] or {}
    then = ((before.controller or {}).get("loop")) or {}
    if then.get("epoch") != loop.get("epoch"):
        then = {}
    return {
        **{key: now["controller"][key] for key in ("role", "epoch", "problem")},
        **{key: loop.get(key) for key in ("strategy", "hosts_joined", "hosts_coordinated")},
        "links_contended": loop.get("links_contended"),
        **_per_second(CONTROLLER_EVENTS, then, loop, seconds),
    }


def _hosts(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, seconds: float
) -> tuple[HostRow, ...]:
    known = {row["host"]: row for row in (before or {}).get("hosts", ())}
    rows = (after or {}).get("hosts", ())
    return tuple(_host(known.get(row["host"], {}), row, seconds) for row in rows if row["joined"])


def _host(then: Mapping[str, Any], now: Mapping[str, Any], seconds: float) -> HostRow:
    return HostRow(
        host=now["host"],
        mode=now["mode"],
        backlog_bytes=now["backlog_bytes"],
        backlog_flows=now["backlog_flows"],
        granted_bps=now["granted_bps"],
        granted_share=min(_grown(then, now, "granted_ns") / seconds / 1e9, 1.0),
        rate_bps=now["rate_kbps"] * 1000,
        slices_per_s=_grown(then, now, "slices") / seconds,
        silent_ms=now["silent_ns"] / 1e6,
        fell_back=bool(now["fell_back"]),
    )


def _coordinator(before: Machine, after: Machine, seconds: float) -> dict[str, Any] | None:
    now = after.coordinator
    if now is None:
        return None
    then = (before.coordinator or {}).get("counters", {})
    return {
        **{key: now[key] for key in ("interface", "mode", "joined", "epoch")},
        "fallbacks": now["counters"]["fallbacks"],
        "flows": now["counters"]["flows"],
        **_per_second(COORDINATOR_EVENTS, then, now["counters"], seconds),
    }


def _flows(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, seconds: float
) -> tuple[FlowRow, ...]:
    known = {_pair(row): row for row in (before or {}).get("flows", ())}
    return tuple(
        FlowRow(
            source=row["source"],
            destination=row["destination"],
            host=row["host"],
            backlog_bytes=row["backlog_bytes"],
            granted_bps=row["open_bps"],
            rate_bps=round(_grown(known.get(_pair(row), {}), row, "sent_bytes") * 8 / seconds),
        )
        for row in (after or {}).get("flows", ())
    )


def _pair(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["source"], row["destination"]


def _per_second(
    keys: tuple[str, ...], then: Mapping[str, Any], now: Mapping[str, Any], seconds: float
) -> dict[str, float]:
    return {f"{key}_per_s": round(_grown(then, now, key) / seconds, 1) for key in keys}


def _grown(then: Mapping[str, Any], now: Mapping[str, Any], key: str) -> int:
    """Return a counter's increase; one that fell has restarted."""
    value, past = int(now.get(key, 0)), int(then.get(key, 0))
    return value - past if value >= past else value

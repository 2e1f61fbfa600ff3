"""Congestion marks in the statistics of queueing disciplines (include/uapi/linux/pkt_sched.h)."""

import struct
from collections.abc import Callable, Iterator
from typing import Final

_ATTRIBUTE: Final = struct.Struct("=HH")
_LENGTH_STEP: Final = 4
_KIND: Final = 0x3FFF
"""An attribute's kind, without its flags."""
_FQ_CODEL_QDISC: Final = 0
_CAKE_TINS: Final = 10
_CAKE_MARKED: Final = 8
_SFQ_MARKS: Final = 56
"""Offset of prob_mark in struct tc_sfq_qopt_v1."""


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and value of each netlink attribute; ends at the first malformed one."""
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if not _ATTRIBUTE.size <= length <= len(data) - at:
            return
        yield kind & _KIND, data[at + _ATTRIBUTE.size : at + length]
        at += -(-length // _LENGTH_STEP) * _LENGTH_STEP


def counts_marks(kind: str) -> bool:
    """Whether a kind of qdisc counts marks."""
    return kind in _IN_XSTATS or kind in _AT or kind == "sfq"


def marks(kind: str, xstats: bytes, options: bytes) -> int:
    """Return the marks that a qdisc has counted; 0 where it counts none.

    Args:
        kind: of the qdisc, such as "fq_codel".
        xstats: its attribute TCA_STATS_APP.
        options: its attribute TCA_OPTIONS.
    """
    if kind in _AT:
        return sum(_number(xstats, at) for at in _AT[kind])
    if kind == "sfq":
        return sum(_number(options, _SFQ_MARKS + 4 * index) for index in range(4))
    reader = _IN_XSTATS.get(kind)
    return reader(xstats) if reader else 0


def _number(data: bytes, at: int) -> int:
    """Return the number of 32 bits at an offset; 0 where an older kernel has none."""
    return int(struct.unpack_from("=I", data, at)[0]) if at + 4 <= len(data) else 0


def _fq(xstats: bytes) -> int:
    return int(struct.unpack_from("=Q", xstats, 80)[0]) if len(xstats) >= 88 else 0


def _fq_codel(xstats: bytes) -> int:
    if _number(xstats, 0) != _FQ_CODEL_QDISC:
        return 0
    return _number(xstats, 12) + _number(xstats, 28)


def _cake(xstats: bytes) -> int:
    tins = (tin for kind, all_tins in attributes(xstats) if kind == _CAKE_TINS
            for _, tin in attributes(all_tins))  # fmt: skip
    return sum(
        _number(value, 0) for tin in tins for kind, value in attributes(tin) if kind == _CAKE_MARKED
    )


_AT: Final[dict[str, tuple[int, ...]]] = {
    "red": (12,),
    "choke": (12,),
    "sfb": (20,),
    "codel": (24, 32),
    "pie": (36,),
    "fq_pie": (16,),
    "dualpi2": (24, 28),
}
"""Offsets of ecn_mark (or marked), and of ce_mark or step_marks, in the structures."""
_IN_XSTATS: Final[dict[str, Callable[[bytes], int]]] = {
    "fq": _fq,
    "fq_codel": _fq_codel,
    "cake": _cake,
}

"""The keys of a model file: types, bounds and meaning, in the units of the paper.

Every number has bounds on both sides, so that TOML's nan and inf never pass.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.cost import LARGEST, MOST_S, SMALLEST
from models.curve import MAX_CAP, MAX_RATE
from models.host import MAX_DELAY

SCHEMA_VERSION = 1
"""The only version so far; a file contains its version."""

MAX_PERCENT = 100 * MAX_CAP
MAX_POINTS = 1000
US_PER_S, NS_PER_S = 1e6, 1e9

_Percent = Annotated[float, Meta(gt=0, le=MAX_PERCENT)]
_Rate = Annotated[float, Meta(ge=0, le=MAX_RATE)]
_Text = Annotated[str, Meta(max_length=1000)]


class HostSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Identification of the host."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=100)] | None,
        Meta(description="a short name, in quotes", examples=['"edge-7"']),
    ] = None
    description: Annotated[
        _Text, Meta(description="where the figures come from, in quotes", examples=['"by hand"'])
    ] = ""
    hypervisor: Annotated[
        _Text, Meta(description="what runs the routers, in quotes", examples=['"Xen 4.17"'])
    ] = ""
    cpu: Annotated[
        _Text, Meta(description="the CPU, in quotes", examples=['"Xeon E5440 2.83 GHz"'])
    ] = ""
    kernel: Annotated[
        _Text, Meta(description="the host's kernel, in quotes", examples=['"Linux 6.1"'])
    ] = ""


class CurveSection(Struct, frozen=True, forbid_unknown_fields=True):
    """The measured points."""

    points: Annotated[
        Annotated[tuple[tuple[_Percent, _Rate], ...], Meta(min_length=2, max_length=MAX_POINTS)],
        Meta(
            description=f"2 to {MAX_POINTS} points [cap in percent of one CPU, packets/s], "
            "caps rising from above 0, rates never falling",
            examples=["[[10, 32000], [20, 65000]]"],
        ),
    ]
    offered_pps: Annotated[
        Annotated[float, Meta(gt=0, le=MAX_RATE)] | None,
        Meta(description="the offered load in packets/s, above 0", examples=["100000"]),
    ] = None


class LogModelSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Eq. 1 of the paper, as printed there."""

    a: Annotated[
        float,
        Meta(ge=0, lt=1, description="a of Eq. 1, at least 0 and below 1", examples=["0.0915"]),
    ]
    b: Annotated[
        float,
        Meta(
            gt=0,
            le=MAX_RATE / 1e3,
            description="b of Eq. 1 in kp/s per decade of cap, above 0",
            examples=["63.0"],
        ),
    ]
    mean_throughput_kpps: Annotated[
        float,
        Meta(
            ge=0,
            le=MAX_RATE / 1e3,
            description="the operating point's throughput in kp/s",
            examples=["78.14"],
        ),
    ]
    mean_log_cap: Annotated[
        float,
        Meta(
            ge=-5,
            le=6,
            description="the operating point's log10 of the cap in percent",
            examples=["1.39"],
        ),
    ]
    cap_threshold_percent: Annotated[
        _Percent,
        Meta(description="the end of the fitted region in percent of one CPU", examples=["60"]),
    ]
    offered_kpps: Annotated[
        float,
        Meta(
            gt=0,
            le=MAX_RATE / 1e3,
            description="the offered load in kp/s, above 0",
            examples=["100"],
        ),
    ]
    r_squared: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="the fit's R², 0 to 1", examples=["0.99"]),
    ] = None


class LoopSection(Struct, frozen=True, forbid_unknown_fields=True):
    """How the host responds to caps, and which caps it supports."""

    lag: Annotated[
        Annotated[float, Meta(ge=0, lt=1)] | None,
        Meta(
            description="the share of a step still missing after one sample, below 1",
            examples=["0.1"],
        ),
    ] = None
    delay_samples: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_DELAY,
            description=f"whole samples before a cap shows, 0 to {MAX_DELAY}",
            examples=["0"],
        ),
    ] = 0
    cap_floor_percent: Annotated[
        _Percent | None,
        Meta(description="the smallest cap in percent of one CPU, above 0", examples=["1"]),
    ] = None
    cap_ceiling_percent: Annotated[
        _Percent | None,
        Meta(description="the largest cap in percent of one CPU", examples=["100"]),
    ] = None
    cap_step_percent: Annotated[
        float,
        Meta(
            ge=0,
            le=MAX_PERCENT,
            description="the step between caps in percent, 0 where fine",
            examples=["1"],
        ),
    ] = 0.0


class UncertaintySection(Struct, frozen=True, forbid_unknown_fields=True):
    """Uncertainty of the curve."""

    noise: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="standard deviation of one sample at a constant cap, as a share",
            examples=["0.03"],
        ),
    ]
    speed_sd: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="standard deviation of the host's speed between visits, as a share",
            examples=["0.015"],
        ),
    ]
    intervals: Annotated[
        Annotated[
            tuple[tuple[_Percent, _Rate, _Rate], ...], Meta(min_length=1, max_length=MAX_POINTS)
        ],
        Meta(
            description=f"1 to {MAX_POINTS} intervals of 95 % [cap in percent of one CPU, "
            "low, high in packets/s], caps rising",
            examples=["[[10, 31000, 33000], [20, 63000, 67000]]"],
        ),
    ]
    top_pps: Annotated[
        tuple[_Rate, _Rate],
        Meta(
            description="the 95 % interval of the largest throughput in packets/s",
            examples=["[98000, 101000]"],
        ),
    ]
    trend: Annotated[
        float,
        Meta(
            ge=-1,
            le=1,
            description="change of the host's speed over the sweep, as a share",
            examples=["-0.01"],
        ),
    ] = 0.0
    limited_by: Annotated[
        Literal["load", "host"] | None,
        Meta(description='what limits the top: "load" or "host"', examples=['"host"']),
    ] = None


class GainsSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Gains of Eq. 2, per kp/s as the paper prints them."""

    kp: Annotated[
        float,
        Meta(
            ge=-1e3,
            le=1e3,
            description="Kp of Eq. 2 in decades of cap per kp/s",
            examples=["1.452e-3"],
        ),
    ]
    ki: Annotated[
        float,
        Meta(
            gt=0,
            le=1e3,
            description="Ki of Eq. 2 in decades of cap per kp/s, above 0",
            examples=["14e-3"],
        ),
    ]
    period_s: Annotated[
        float,
        Meta(
            ge=1e-3, le=3600, description="seconds between samples, 0.001 to 3600", examples=["1.0"]
        ),
    ] = 1.0
    dead_zone: Annotated[
        float,
        Meta(ge=0, lt=1, description="share of the setpoint left alone, below 1", examples=["0.1"]),
    ] = 0.10
    min_cap_percent: Annotated[
        _Percent,
        Meta(description="the smallest cap given, in percent of one CPU", examples=["3"]),
    ] = 1.0


class GainsTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The published control laws with known gains."""

    pi: Annotated[GainsSection | None, Meta(description="gains of the PI law")] = None
    dead_beat: Annotated[GainsSection | None, Meta(description="gains of the dead-beat law")] = None


class CostSection(Struct, frozen=True, forbid_unknown_fields=True):
    """CPU cost of packets by size, in bytes of the frame without checksum."""

    per_packet_us: Annotated[
        float,
        Meta(
            ge=0,
            le=MOST_S * US_PER_S,
            description="CPU time of any packet in microseconds",
            examples=["4.2"],
        ),
    ]
    per_byte_ns: Annotated[
        float,
        Meta(
            ge=0,
            le=MOST_S * NS_PER_S,
            description="CPU time of a byte of a packet's frame in nanoseconds",
            examples=["1.5"],
        ),
    ]
    reference_bytes: Annotated[
        float,
        Meta(
            ge=SMALLEST,
            le=LARGEST,
            description="the packet size that [curve] is of, in bytes of the frame",
            examples=["64"],
        ),
    ]


class HostDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole model file."""

    schema: Annotated[
        int, Meta(description="the version of this format", examples=[str(SCHEMA_VERSION)])
    ]
    host: Annotated[HostSection, Meta(description="which host this is")] = HostSection()
    curve: Annotated[CurveSection | None, Meta(description="what was measured")] = None
    log_model: Annotated[LogModelSection | None, Meta(description="Eq. 1's parameters")] = None
    uncertainty: Annotated[
        UncertaintySection | None, Meta(description="how well the curve is known")
    ] = None
    loop: Annotated[LoopSection, Meta(description="how the host answers")] = LoopSection()
    gains: Annotated[GainsTable, Meta(description="gains of Eq. 2")] = GainsTable()
    cost: Annotated[CostSection | None, Meta(description="what packets cost")] = None

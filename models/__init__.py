"""Models of hardware: throughput as a function of cap, and the files that describe hosts."""

from models.cost import PacketCost
from models.curve import ThroughputCurve
from models.dump import dump_host
from models.errors import InvalidModelError, ModelError, ModelFileError, OutOfRange
from models.host import ControlGains, HostModel
from models.hostfile import bundled_host, bundled_names, load_host, paper_host, parse_host
from models.logcap import LogCapModel
from models.uncertainty import Uncertainty

__all__ = [
    "ControlGains",
    "HostModel",
    "InvalidModelError",
    "LogCapModel",
    "ModelError",
    "ModelFileError",
    "OutOfRange",
    "PacketCost",
    "ThroughputCurve",
    "Uncertainty",
    "bundled_host",
    "bundled_names",
    "dump_host",
    "load_host",
    "paper_host",
    "parse_host",
]

"""Sizes and gaps of background flows.

The paper draws them in its Fig. 8 and gives no numbers. This is a stand-in: sizes of the web search
cluster that its reference for the workload measured (DCTCP), as simulators have them since, in
packets; gaps are exponential, of a given mean.
"""

import math
import random
from itertools import pairwise
from typing import Final

from lab.errors import BadRequestError

PACKET_BYTES: Final = 1_460
SIZES: Final = (
    (0.0, 1),
    (0.15, 6),
    (0.2, 13),
    (0.3, 19),
    (0.4, 33),
    (0.53, 53),
    (0.6, 133),
    (0.7, 667),
    (0.8, 1_333),
    (0.9, 3_333),
    (0.97, 6_667),
    (1.0, 20_000),
)
"""Shares of flows, and packets of which they have at most; between them, logarithms are linear."""


def size_at(share: float) -> int:
    """Return the bytes that this share of the flows has at most: the inverse of the distribution.

    Raises:
        BadRequestError: the share is not within [0, 1].
    """
    for (low, few), (high, many) in pairwise(SIZES):
        if low <= share <= high:
            part = (share - low) / (high - low)
            logarithm = math.log(few) + part * (math.log(many) - math.log(few))
            return round(math.exp(logarithm) * PACKET_BYTES)
    raise BadRequestError("share", share, "a share from 0 to 1")


def draw_size(generator: random.Random, largest: int) -> int:
    """Draw the bytes of a flow; larger ones than a bound have the bound."""
    return min(size_at(generator.random()), largest)


def draw_gap(generator: random.Random, mean_s: float) -> float:
    """Draw the seconds between the end of a flow and the next."""
    return generator.expovariate(1 / mean_s)

"""What the traffic source is asked for: rates and packet sizes; how many packets a send takes."""

import pytest

from lab.errors import BadRequestError
from lab.programs.processes import Source, payload_of
from lab.programs.source import (
    BATCH,
    HEADERS,
    LARGEST_DATAGRAM,
    LARGEST_PAYLOAD,
    PAYLOAD,
    Order,
    batch_of,
    order_of,
)


class Told(Source):
    """A source whose input is kept instead of sent."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def _tell(self, line: str) -> None:
        self.lines.append(line)


def test_a_size_goes_to_the_source_as_the_data_of_its_packets() -> None:
    source = Told()
    source.set_rate(5e3)
    source.set_rate(5e3, 64)
    source.set_rate(7e3, 1514)
    assert source.lines == ["5000.0", "5000.0 22", "7000.0 1472"]
    assert [order_of(line) for line in source.lines] == [
        Order(5e3, None),
        Order(5e3, PAYLOAD),
        Order(7e3, LARGEST_PAYLOAD),
    ]


@pytest.mark.parametrize("size", [0, HEADERS, 1515, -64])
def test_a_size_that_no_frame_of_the_lab_has_is_refused(size: int) -> None:
    with pytest.raises(BadRequestError, match="packet size"):
        payload_of(size)


def test_the_last_of_several_orders_counts_and_the_last_size_that_is_named() -> None:
    assert order_of("1000\n2000 22\n3000\n") == Order(3e3, 22)
    assert order_of("1000 22\n2000 500\n") == Order(2e3, 500)
    assert order_of("5\n") == Order(5.0, None)
    assert order_of("") is None


@pytest.mark.parametrize("payload", [1, PAYLOAD, 1000, 1023, 1024, LARGEST_PAYLOAD])
def test_a_batch_fits_into_a_datagram(payload: int) -> None:
    batch = batch_of(payload)
    assert batch * payload <= LARGEST_DATAGRAM
    assert batch == BATCH or (batch + 1) * payload > LARGEST_DATAGRAM

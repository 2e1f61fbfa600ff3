"""Netlink messages: what is packed is read back, and no bytes make the reader fail."""

from hypothesis import given
from hypothesis import strategies as st

from xtc.kernel.netlink import attribute, attributes, text

KINDS = st.integers(0, 0x3FFF)
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(KINDS, st.binary(max_size=40)))
def test_attributes_are_read_back(wanted: dict[int, bytes]) -> None:
    packed = b"".join(attribute(kind, value) for kind, value in wanted.items())
    assert len(packed) % 4 == 0
    assert attributes(packed) == wanted
    assert attributes(b"head" + packed, 4) == wanted


@given(NAMES)
def test_a_text_ends_with_its_last_letter(name: str) -> None:
    assert text(name.encode() + b"\0") == name


@given(st.binary(max_size=60))
def test_reading_ends_whatever_the_bytes(message: bytes) -> None:
    attributes(message)

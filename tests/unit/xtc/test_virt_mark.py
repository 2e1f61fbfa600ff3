"""The mark in a domain's metadata: written, read back as libvirt gives it, and what is no mark."""

import pytest

from xtc.libvirt.metadata import mark_of, original_of

ORIGINAL = {"vcpu_period": 100_000, "vcpu_quota": -1}


def test_a_mark_reads_back_as_it_was_written() -> None:
    assert original_of(mark_of(ORIGINAL)) == ORIGINAL


@pytest.mark.parametrize(
    "mark",
    [
        '<original vcpu_period="100000" vcpu_quota="-1"/>',
        '<xtc:original xmlns:xtc="urn:xtc:original:1" vcpu_period="100000" vcpu_quota="-1"/>',
        '<original xmlns="urn:xtc:original:1" vcpu_period="100000" vcpu_quota="-1"></original>',
        '\n  <original vcpu_quota="-1" vcpu_period="100000"/>\n',
    ],
)
def test_a_mark_reads_the_same_with_and_without_its_namespace(mark: str) -> None:
    assert original_of(mark) == ORIGINAL


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "original",
        "<original",
        "<original/>",
        '<other cap="0"/>',
        '<original cap=""/>',
        '<original cap="half"/>',
        '<original cap="0.5"/>',
        '<original cap="0" note="by hand"/>',
        "\x00",
        '<?xml version="1.0"?>',
    ],
)
def test_what_somebody_else_wrote_says_nothing(garbage: str) -> None:
    assert original_of(garbage) is None

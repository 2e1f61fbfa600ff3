"""What holds for every model file: round trips, and one typed error for whatever else it holds."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from models import (
    ControlGains,
    HostModel,
    LogCapModel,
    ModelFileError,
    PacketCost,
    ThroughputCurve,
    Uncertainty,
    dump_host,
    paper_host,
    parse_host,
)

TEXT = st.text(max_size=40)
EXACT_PERCENT = st.integers(1, 80_000).map(lambda thousandths: thousandths / 1000 / 100)
ANY_CAP = st.floats(1e-4, 8.0)


def gains(caps: st.SearchStrategy[float]) -> st.SearchStrategy[ControlGains | None]:
    known = st.builds(
        ControlGains,
        kp=st.floats(-1.0, 1.0),
        ki=st.floats(1e-9, 1.0),
        period=st.floats(1e-3, 60.0),
        dead_zone=st.floats(0.0, 0.5),
        min_cap=caps,
    )
    return st.none() | known


def costs() -> st.SearchStrategy[PacketCost | None]:
    known = st.builds(
        PacketCost,
        per_packet_s=st.integers(1, 10**9).map(lambda nanoseconds: nanoseconds / 1e3 / 1e6),
        per_byte_s=st.integers(0, 10**9).map(lambda picoseconds: picoseconds / 1e3 / 1e9),
        reference_bytes=st.floats(14.0, 65_549.0),
    )
    return st.none() | known


@st.composite
def uncertainties(draw: st.DrawFn, caps: st.SearchStrategy[float]) -> Uncertainty | None:
    if draw(st.booleans()):
        return None
    ends = st.lists(st.floats(1.0, 1e6), min_size=2, max_size=2).map(sorted)
    intervals = tuple(
        (cap, *draw(ends)) for cap in sorted(draw(st.sets(caps, min_size=1, max_size=3)))
    )
    low, high = draw(st.floats(0.0, 1.0)), 1e9  # whatever the curve's top is
    return Uncertainty(
        noise=draw(st.floats(0.0, 1.0)),
        speed_sd=draw(st.floats(0.0, 1.0)),
        trend=draw(st.floats(-1.0, 1.0)),
        intervals=intervals,
        top=(low, high),
        limited_by=draw(st.sampled_from(["load", "host", None])),
    )


@st.composite
def hosts(draw: st.DrawFn, caps: st.SearchStrategy[float]) -> HostModel:
    rates = st.lists(st.floats(0.0, 1e6), min_size=2, max_size=2)
    points = zip(
        sorted(draw(st.sets(caps, min_size=2, max_size=2))), sorted(draw(rates)), strict=True
    )
    curve = ThroughputCurve((*points, (900.0, 2e6)), draw(st.none() | st.floats(2e6, 1e9)))
    log_model = LogCapModel(
        a=draw(st.floats(0.0, 0.99)),
        b=draw(st.floats(10.0, 100.0)),
        mean_throughput=draw(st.floats(50.0, 1e3)),
        mean_log_cap=draw(st.floats(0.0, 1.0)),
        cap_threshold=draw(st.integers(11, 100)) / 100,
        offered=draw(st.integers(1, 10**6)) * 1e3,
        r_squared=draw(st.none() | st.floats(0.0, 1.0)),
    )
    which = draw(st.sampled_from([(curve, None), (None, log_model), (curve, log_model)]))
    return HostModel(
        name=draw(st.text(min_size=1, max_size=100)),
        description=draw(TEXT),
        hypervisor=draw(TEXT),
        cpu=draw(TEXT),
        kernel=draw(TEXT),
        measured_curve=which[0],
        log_model=which[1],
        lag=draw(st.floats(0.0, 0.99)),
        delay_samples=draw(st.integers(0, 5)),
        cap_floor=draw(caps),
        cap_ceiling=800.0,
        cap_step=draw(st.just(0.0) | caps),
        uncertainty=draw(uncertainties(caps)),
        pi=draw(gains(caps)),
        dead_beat=draw(gains(caps)),
        cost=draw(costs()),
    )


def reload(text: str) -> HostModel:
    return parse_host(text.encode(), "copy.toml")


@given(hosts(EXACT_PERCENT))
@example(paper_host())
def test_a_host_of_written_digits_survives_dump_and_load(host: HostModel) -> None:
    assert reload(dump_host(host)) == host


@given(hosts(ANY_CAP))
def test_dumping_again_changes_nothing(host: HostModel) -> None:
    text = dump_host(host)
    assert dump_host(reload(text)) == text


@given(st.binary(max_size=200))
def test_any_bytes_give_a_host_or_the_typed_error(content: bytes) -> None:
    assert_total(content)


VALUES = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(["true", "[]", "{}", "[[1, 2], [3, 4]]", "'text'", "1979-05-27", "07:32:00"]),
    st.integers(0, 1 << 7_000).map(hex),
    st.lists(st.lists(st.floats().map(repr), max_size=3).map(lambda p: f"[{', '.join(p)}]")).map(
        lambda p: f"[{', '.join(p)}]"
    ),
)
KNOWN = Uncertainty(0.03, 0.01, -0.02, ((0.1, 31e3, 33e3), (0.6, 99e3, 1e5)), (99e3, 1e5), "host")
LINES = dump_host(replace(paper_host(), uncertainty=KNOWN)).splitlines()


@given(st.data())
def test_a_good_file_with_one_value_replaced_is_a_host_or_the_typed_error(
    data: st.DataObject,
) -> None:
    lines = list(LINES)
    index = data.draw(st.sampled_from([i for i, line in enumerate(lines) if " = " in line]))
    key = lines[index].partition(" = ")[0]
    lines[index] = f"{key} = {data.draw(VALUES)}"
    assert_total("\n".join(lines).encode())


@given(st.sets(st.integers(0, len(LINES) - 1), max_size=8))
def test_a_good_file_with_lines_missing_is_a_host_or_the_typed_error(missing: set[int]) -> None:
    kept = [line for index, line in enumerate(LINES) if index not in missing]
    assert_total("\n".join(kept).encode())


def assert_total(content: bytes) -> None:
    """Whatever loads forwards something; whatever does not says where and why."""
    answer: HostModel | ModelFileError
    try:
        answer = parse_host(content, "edge.toml")
    except ModelFileError as error:
        answer = error
    if isinstance(answer, HostModel):
        assert answer.curve.top > 0.0
    else:
        assert all((answer.field, answer.problem, answer.fix))

"""Notifications of one stream, sorted by port: paths, deletions, silence, without a clock."""

from typing import Any

import pytest
from gnmi_switch import container, counters, leaf, pb2

from xco.errors import PortGone, PortUncounted, SwitchAway, SwitchGarbled
from xco.ports.gnmi_gather import Gathered
from xco.ports.gnmi_paths import GnmiPort, paths, subscribe_request
from xco.ports.gnmi_samples import Arrival
from xco.ports.reader import Counters, Reading

S = 1_000_000_000
MARKS = "/vendor:qos/port[name=e1]/state/marked-pkts"
E1, E2, QUEUE = GnmiPort("e1"), GnmiPort("e2"), GnmiPort("e1", "q3")
SYNC = pb2.SubscribeResponse(sync_response=True)


def sent(*updates: Any, **fields: Any) -> Any:
    return pb2.SubscribeResponse(update=pb2.Notification(update=updates, **fields))


def whole(port: GnmiPort, count: int) -> Any:
    return sent(container(paths(port)[0], counters(count)))


def gathered(*ports: GnmiPort, responses: tuple[Any, ...] = ()) -> Gathered:
    made = Gathered(ports, S, 0)
    for response in responses:
        made.take(response, Arrival(S))
    return made


def read(one: Gathered, now_ns: int = S) -> list[Reading | None]:
    return one.readings(now_ns, "tor:9339")


def test_the_request_names_every_path_with_its_interval() -> None:
    wanted = subscribe_request([GnmiPort("e1", marks=MARKS), E2], S).subscribe
    assert wanted.mode == pb2.SubscriptionList.STREAM
    assert [(one.mode, one.sample_interval) for one in wanted.subscription] == [(pb2.SAMPLE, S)] * 3


@pytest.mark.parametrize("queue", ["", "q3"])
def test_an_origin_is_that_of_every_path_of_openconfig(queue: str) -> None:
    counts, marks = paths(GnmiPort("e1", queue, MARKS, "openconfig"))
    assert (counts.origin, marks.origin) == ("openconfig", "vendor")


def test_the_first_reading_is_that_of_all_ports() -> None:
    one = gathered(E1, E2, responses=(whole(E1, 1), whole(E2, 2)))
    assert not one.ready()
    one.take(SYNC, Arrival(S))
    assert one.ready()
    assert read(one) == [Counters(1, 100, drops=2), Counters(2, 200, drops=2)]
    assert not one.ready()


def test_later_each_port_is_read_by_itself() -> None:
    one = gathered(E1, E2, responses=(whole(E1, 1), whole(E2, 1), SYNC))
    read(one)
    one.take(whole(E2, 5), Arrival(2 * S))
    assert one.ready()
    assert read(one, 2 * S) == [None, Counters(5, 500, drops=2)]


def test_a_target_that_never_says_sync_is_read_at_its_second_sample() -> None:
    one = gathered(E1, responses=(whole(E1, 1), whole(E1, 2)))
    assert one.ready()
    assert read(one) == [Counters(2, 200, drops=2)]


def test_a_sample_that_is_split_is_never_mixed_with_the_next() -> None:
    one = gathered(E1, responses=(whole(E1, 1), SYNC))
    read(one)
    path = paths(E1)[0]
    for count in (2, 3, 4):
        one.take(sent(leaf(path, "out-octets", 100 * count)), Arrival(count * S))
        assert not one.ready()
        one.take(sent(leaf(path, "out-pkts", count)), Arrival(count * S))
        one.take(sent(leaf(path, "out-discards", 2)), Arrival(count * S))
        assert read(one, count * S) == [Counters(count, 100 * count, drops=2)]


def test_prefix_and_modules_of_a_path_make_no_difference() -> None:
    steps = paths(E1)[0].elem
    prefix = pb2.Path(
        elem=[pb2.PathElem(name="openconfig-interfaces:" + steps[0].name), steps[1]],
        origin="openconfig",
    )
    update = container(pb2.Path(elem=steps[2:]), counters(3))
    one = gathered(E1, responses=(sent(update, prefix=prefix), SYNC))
    assert read(one) == [Counters(3, 300, drops=2)]


def test_a_queue_and_its_interface_are_two_ports() -> None:
    values = {"transmit-octets": "9", "transmit-pkts": "1", "dropped-pkts": "0"}
    queue = sent(container(paths(QUEUE)[0], values))
    one = gathered(E1, QUEUE, responses=(whole(E1, 1), queue, SYNC))
    assert read(one) == [Counters(1, 100, drops=2), Counters(1, 9)]


@pytest.mark.parametrize("value", [41, "41", {"vendor:marked-pkts": "41"}])
def test_marks_come_from_the_vendors_path(value: Any) -> None:
    port = GnmiPort("e1", marks=MARKS)
    counts, marks = paths(port)
    both = sent(container(counts, counters(1)), container(marks, value))
    one = gathered(port, responses=(both, SYNC))
    assert read(one) == [Counters(1, 100, 41, 2, counts_marks=True)]


@pytest.mark.parametrize("value", ["many", {"a": 1, "b": 2}, {}, True, [1]])
def test_marks_that_are_not_one_number_are_garbled(value: Any) -> None:
    port = GnmiPort("e1", marks=MARKS)
    counts, marks = paths(port)
    both = sent(container(counts, counters(1)), container(marks, value))
    assert isinstance(read(gathered(port, responses=(both, SYNC)))[0], SwitchGarbled)


def test_what_is_no_json_is_garbled_until_the_next_sample() -> None:
    broken = pb2.Update(path=paths(E1)[0], val=pb2.TypedValue(json_ietf_val=b"{"))
    one = gathered(E1, responses=(sent(broken), SYNC))
    assert isinstance(read(one)[0], SwitchGarbled)
    one.take(whole(E1, 2), Arrival(2 * S))
    assert read(one, 2 * S) == [Counters(2, 200, drops=2)]


def test_a_wrong_type_that_stays_is_an_error_that_stays() -> None:
    wrong = sent(container(paths(E1)[0], {**counters(1), "out-discards": "few"}))
    one = gathered(E1, responses=(wrong, SYNC))
    assert isinstance(read(one)[0], SwitchGarbled)
    one.take(wrong, Arrival(2 * S))
    assert [type(each) for each in read(one, 2 * S)] == [SwitchGarbled]


def test_containers_below_the_counters_are_no_counters() -> None:
    deep = pb2.Path(elem=[*paths(E1)[0].elem, pb2.PathElem(name="more")])
    one = gathered(E1, responses=(whole(E1, 1), sent(leaf(deep, "out-octets", 7)), SYNC))
    assert read(one) == [Counters(1, 100, drops=2)]


@pytest.mark.parametrize("length", [2, 4])
def test_a_deleted_port_is_gone_and_comes_back(length: int) -> None:
    one = gathered(E1, E2, responses=(whole(E1, 1), whole(E2, 1), SYNC))
    read(one)
    gone = pb2.Path(elem=paths(E1)[0].elem[:length])
    one.take(sent(delete=[gone]), Arrival(2 * S))
    assert [type(each) for each in read(one, 2 * S)] == [PortGone, type(None)]
    one.take(whole(E1, 9), Arrival(3 * S))
    assert read(one, 3 * S)[0] == Counters(9, 900, drops=2)


def test_a_port_that_falls_silent_is_an_error_and_the_others_go_on() -> None:
    one = gathered(E1, E2, responses=(whole(E1, 1), whole(E2, 1), SYNC))
    read(one)
    one.take(whole(E2, 2), Arrival(3 * S))
    assert one.patience_ns(3 * S) == 2 * S - S
    silent, sound = read(one, 4 * S)
    assert isinstance(silent, PortUncounted)
    assert "no update for 3 s" in str(silent)
    assert isinstance(sound, Counters)
    assert one.patience_ns(4 * S) == 2 * S


def test_a_stream_that_falls_silent_is_away() -> None:
    one = gathered(E1, responses=(whole(E1, 1), SYNC))
    read(one)
    assert one.patience_ns(4 * S) == 0
    with pytest.raises(SwitchAway, match=r"^tor:9339: no update for 3 s"):
        read(one, 4 * S)


def test_a_stream_of_other_ports_alone_says_what_it_sends() -> None:
    one = gathered(E1, responses=(whole(E2, 1),))
    with pytest.raises(SwitchAway, match=r"\[name=e2\]/state/counters, which was not requested"):
        read(one, 5 * S)


def test_a_stream_that_never_answered_is_away_for_another_reason() -> None:
    one = gathered(E1)
    assert one.patience_ns(0) == 5 * S
    with pytest.raises(SwitchAway, match="no answer"):
        read(one, 5 * S)


def test_a_port_that_has_no_counters_is_an_error_at_sync() -> None:
    sound, missing = read(gathered(E1, E2, responses=(whole(E1, 1), SYNC)))
    assert isinstance(sound, Counters)
    assert isinstance(missing, PortUncounted)

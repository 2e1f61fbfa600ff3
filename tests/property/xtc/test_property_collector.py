"""What a collector keeps from reading to reading is what each reading would tell anew."""

from hypothesis import given
from hypothesis import strategies as st

from common.units import PacketsPerSecond
from xtc.measure.collector import Binding, Collector
from xtc.measure.meter import Fault, InterfaceRate

NAMES = ("a.0", "a.1", "b.0", "b.1", "x")
BINDINGS = {"a": Binding(("a.0", "a.*")), "b": Binding(("b.*",)), "c": Binding(("x", "b.1"))}
OTHERS = {"a": Binding(("a.*",)), "b": Binding(("b.0", "b.1"))}
RATE = InterfaceRate(*map(PacketsPerSecond, (1.0, 0.0, 1.0, 0.0)), None, None)
readings = st.dictionaries(st.sampled_from(NAMES), st.sampled_from([RATE, Fault.VANISHED]))
steps = st.lists(readings | st.sampled_from([BINDINGS, OTHERS]) | st.booleans(), max_size=12)


def is_binding(step: object) -> bool:
    return step in (BINDINGS, OTHERS)


@given(steps)
def test_missing_interfaces_are_never_those_of_an_earlier_reading(steps: list[object]) -> None:
    collector, bindings = Collector(BINDINGS), BINDINGS
    for step in steps:
        if isinstance(step, bool):
            collector.rebind(bindings, forget=step)
        elif isinstance(step, dict) and is_binding(step) and step:
            collector.rebind(bindings := step)
        elif isinstance(step, dict):
            found = collector.aggregate(step)
            for vr in bindings:
                expected = {*collector._claims.named[vr], *collector._full.get(vr, ())}
                missing = [f"{name}: not there" for name in sorted(expected - step.keys())]
                assert [p for p in found[vr].problems if p.endswith("not there")] == missing

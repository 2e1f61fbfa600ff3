"""From configuration to plans: units, models, bounds, and one place for one router."""

from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import ConfigError, ConfigErrors
from common.setpoint import Setpoint, Unit
from common.units import CapFraction, Seconds
from models import paper_host
from xtc.actuator.base import CapLimits
from xtc.config.file import load_config, located, parse_config
from xtc.config.plan import RouterPlan, exempted, plans
from xtc.control.adaptive import AdaptiveLaw
from xtc.control.law import Bounds, PaperLaw
from xtc.control.laws import NAMES, NAMES_IN_BITS
from xtc.shield.exemptions import DEFAULT

HEAD = """
[router.edge1]
actuator = { kind = "simulated", plant = "a" }
interfaces = ["a.0"]
"""
FINE = CapLimits(CapFraction(0.001), CapFraction(4.0))
PERCENT = CapLimits(CapFraction(0.01), CapFraction(1.0), 0.01)


def planned(more: str = "") -> RouterPlan:
    return plans(parse_config(HEAD + more))["edge1"]


def bounds(more: str, limits: CapLimits) -> Bounds:
    return planned(more).profile(limits, Seconds(1.0)).bounds


@pytest.mark.parametrize("setpoint", ["'20kpps'", "20000", "2e4", "'20 kp/s'"])
def test_a_rate_is_read_as_it_is_written(setpoint: str) -> None:
    assert planned(f"setpoint = {setpoint}").setpoint == Setpoint(20e3)


@pytest.mark.parametrize("setpoint", ["50Mb/s", "50 Mbit/s", "50000kb/s", "5e7b/s"])
def test_a_bit_rate_is_read_as_it_is_written(setpoint: str) -> None:
    assert planned(f"setpoint = '{setpoint}'").setpoint == Setpoint(50e6, Unit.BITS)


@pytest.mark.parametrize(
    ("setpoint", "burst", "packets_or_bits"),
    [
        ("20kpps", "500", 500.0),
        ("20kpps", "'500ms'", 10e3),
        ("20kpps", "'5s'", 100e3),
        ("50Mb/s", "'2Mb'", 2e6),
        ("50Mb/s", "'100ms'", 5e6),
    ],
)
def test_a_burst_goes_with_the_setpoint_and_may_be_longer_than_a_period(
    setpoint: str, burst: str, packets_or_bits: float
) -> None:
    plan = planned(f"setpoint = '{setpoint}'\nburst = {burst}")
    assert plan.setpoint is not None
    assert plan.setpoint.burst == plan.setpoint.allowance == packets_or_bits


def test_a_burst_of_a_setpoint_that_cannot_be_read_is_not_judged() -> None:
    with pytest.raises(ConfigError) as caught:
        planned("setpoint = 'fast'\nburst = '2Mb'")
    assert caught.value.where == "router.edge1.setpoint"


@pytest.mark.parametrize("law", NAMES)
def test_only_laws_of_ratios_hold_bits(law: str) -> None:
    more = f"setpoint = '50Mb/s'\nlaw = '{law}'"
    if law in NAMES_IN_BITS:
        assert planned(more).law == law
        return
    with pytest.raises(ConfigError, match=f"law {law} holds no bits/s .*take the law default"):
        planned(more)


def test_a_trained_host_lends_bits_its_lag_and_no_curve() -> None:
    plan = planned("model = 'paper'")
    profile = plan.profile(CapLimits(CapFraction(0.01), CapFraction(1.0)), Seconds(1.0))
    assert isinstance(profile.law, AdaptiveLaw)
    assert profile.law.curve is not None
    assert profile.law_of(Unit.PACKETS) is profile.law
    assert profile.law_of(Unit.BITS) == replace(profile.law, curve=None)


def test_caps_are_read_as_percent_or_fraction() -> None:
    plan = planned("floor = '3%'\nceiling = 0.5\nsafe_cap = '20%'")
    assert (plan.floor, plan.ceiling, plan.safe_cap) == (0.03, 0.5, 0.2)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ("setpoint = 0", "setpoint"),
        ("setpoint = nan", "setpoint"),
        ("setpoint = inf", "setpoint"),
        ("setpoint = '20kbps'", "setpoint"),
        ("setpoint = '50Mb'", "setpoint"),
        ("setpoint = '-50Mb/s'", "setpoint"),
        ("setpoint = '999b/s'", "setpoint"),
        ("setpoint = '50Mb/s'\nlaw = 'pi'", "setpoint"),
        *(
            (f"setpoint = '20kpps'\nburst = {burst}", "burst")
            for burst in ("0", "-1", "nan", "inf", "0.5", "2e6", "'2Mb'", "'61s'", "'soon'", "''")
        ),
        ("setpoint = '50Mb/s'\nburst = 2e6", "burst"),
        ("setpoint = '50Mb/s'\nburst = '4kp'", "burst"),
        ("burst = '200ms'", "burst"),
        ("floor = 0", "floor"),
        ("floor = nan", "floor"),
        ("ceiling = '-5%'", "ceiling"),
        ("safe_cap = 'low'", "safe_cap"),
        ("floor = 1e300", "floor"),
        ("ceiling = '900000%'", "ceiling"),
        ("floor = 0.5\nceiling = 0.4", "floor"),
        ("law = 'bang-bang'", "law"),
        ("model = '/nowhere/host.toml'", "model"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(more: str, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        planned(more)
    assert caught.value.where == f"router.edge1.{field}"


def test_all_that_makes_no_sense_is_named() -> None:
    with pytest.raises(ConfigErrors) as caught:
        plans(
            parse_config(
                HEAD + "floor = 1e300\nlaw = 'x'\nsetpoint = 'fast'\n[router.b]\n"
                "actuator = { kind = 'simulated', plant = 'b' }"
            )
        )
    assert [one.where for one in caught.value.mistakes] == [
        *("router.edge1.law", "router.edge1.setpoint", "router.edge1.floor", "router.b"),
    ]


def test_a_wrong_unit_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "xtc.toml"
    path.write_text(HEAD + "setpoint = '20kbps'")
    with pytest.raises(ConfigError) as caught, located(path):
        plans(load_config(path))
    assert str(caught.value) == (
        f'{path}:5: router.edge1.setpoint: "20kbps" is not clear: '
        "write 20kb/s for bits, or packets as in 20kpps"
    )


def test_a_router_needs_interfaces() -> None:
    with pytest.raises(ConfigError, match=r"router\.edge1: no interfaces .*domid = 7"):
        plans(parse_config(HEAD.replace('["a.0"]', "[]")))


def test_two_routers_never_share_a_place() -> None:
    with pytest.raises(ConfigError, match=r"router\.edge2\.actuator: the same as router\.edge1"):
        plans(parse_config(HEAD + HEAD.replace("edge1", "edge2")))


def test_a_model_comes_by_name_or_file() -> None:
    assert planned("model = 'paper'").model is not None
    assert planned().model is None
    found = planned("law = 'pi'\nmodel = 'paper'").profile(FINE, Seconds(1.0))
    assert isinstance(found.law, PaperLaw)


def test_bounds_are_the_narrower_of_configuration_and_actuator() -> None:
    assert bounds("", FINE) == Bounds(CapFraction(0.001), CapFraction(4.0))
    assert bounds("floor = 0.03\nceiling = 0.5", FINE) == Bounds(
        CapFraction(0.03), CapFraction(0.5)
    )
    assert bounds("floor = 0.0001\nceiling = 64", FINE) == bounds("", FINE)


def test_bounds_are_drawn_in_to_whole_steps() -> None:
    found = bounds("floor = 0.035\nceiling = 0.505", PERCENT)
    assert [found.floor, found.ceiling] == pytest.approx([0.04, 0.50])


def test_a_floor_above_what_the_host_has_is_its_ceiling() -> None:
    found = bounds("floor = 8", FINE)
    assert (found.floor, found.ceiling) == (4.0, 4.0)


def test_a_relative_model_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"router\.edge1\.model"):
        planned("model = 'mine.toml'")


def test_a_model_s_lag_and_delay_are_those_of_the_loop_s_period() -> None:
    model = replace(paper_host(), lag=0.64, delay_samples=2)
    law = replace(planned(), model=model).profile(FINE, Seconds(0.5)).law
    assert isinstance(law, AdaptiveLaw)
    assert (law.lag, law.delay) == (pytest.approx(0.8), 4)
    assert replace(planned(), model=model).profile(FINE, Seconds(1.0)).law.lag == 0.64


@pytest.mark.parametrize("law", ["pi", "dead-beat", "dead-beat-min3"])
def test_gains_for_another_period_are_refused(law: str) -> None:
    daemon = "[daemon]\nperiod_s = 0.5\n"
    text = f"{HEAD}law = '{law}'\nmodel = 'paper'\n"
    with pytest.raises(ConfigError, match=r"edge1\.law: the gains of paper are for samples of 1 s"):
        plans(parse_config(text + daemon))
    assert plans(parse_config(text))["edge1"].law == law
    assert plans(parse_config(text.replace(law, "default") + daemon))["edge1"].law == "default"


def test_what_the_configuration_exempts_comes_beside_what_always_is() -> None:
    config = parse_config('[limiter]\nexempt = ["udp/4789"]\nexempt_pps = "2kpps"')
    exempt, rate = exempted(config.limiter)
    assert ("udp", 4789) in exempt.entries
    assert len(exempt.entries) == len(DEFAULT) + 1
    assert rate == 2000


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('exempt = ["bgp"]', "limiter.exempt"),
        ('exempt = ["ip/17"]', "limiter.exempt"),
        ('exempt_pps = "fast"', "limiter.exempt_pps"),
        ("exempt_pps = 0.5", "limiter.exempt_pps"),
    ],
)
def test_an_exemption_that_cannot_be_is_named(line: str, field: str) -> None:
    with pytest.raises(ConfigError, match=f"^{field}: "):
        exempted(parse_config(f"[limiter]\n{line}").limiter)


@pytest.mark.parametrize(
    ("floors", "more", "weight"),
    [
        ("true", "", "auto"),
        ("false", "", "keep"),
        ("true", 'weight = "keep"', "keep"),
        ("false", "weight = 700", 700),
    ],
)
def test_weights_follow_setpoints_unless_they_are_to_stay(
    floors: str, more: str, weight: str | int
) -> None:
    config = parse_config(f"{HEAD}{more}\n[daemon]\nfloors = {floors}\n")
    (plan,) = plans(config).values()
    assert plan.weight == weight


@pytest.mark.parametrize("weight", ['"car"', "0", "262145", '"100"'])
def test_a_weight_that_is_none_is_named(weight: str) -> None:
    with pytest.raises(ConfigError, match=r"weight: .* is no weight") as caught:
        planned(f"weight = {weight}")
    assert '"auto", "keep", or a number from 1 to 262144' in caught.value.fix

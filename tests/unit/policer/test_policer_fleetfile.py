"""The fleet's file: what is read and refused, what it would change, and who may."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from fleet_values import NOW
from store_values import host, promise

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.promised import ANYWHERE
from policer.contracts.tenant import Tenant
from policer.errors import FileMistakes, Invalid, SettingsError
from policer.fleetfile import document
from policer.fleetfile.document import Entered, FleetFile, HostEntry, file_of, size_problems
from policer.fleetfile.reading import MAX_BYTES, read_file, read_text
from policer.fleetfile.writing import json_of, toml_of
from policer.store.database.records import refuse

GOLD = """\
version = 1

[hosts.gold]
requests = "ipc:///run/gold/requests"
telemetry = "ipc:///run/gold/telemetry"
capacity_pps = "100kpps"
"""
UUID = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"


def mistakes(text: str) -> list[str]:
    with pytest.raises(FileMistakes) as refused:
        read_text(text, "fleet.toml")
    return str(refused.value).split("\n")


# --- reading and writing


def test_a_host_in_the_file_has_the_fields_that_a_host_has() -> None:
    """A field that is added to hosts must be added to the file, or exports would lose it."""
    ours = {field.name: field.type for field in msgspec.structs.fields(HostEntry)}
    theirs = {field.name: field for field in msgspec.structs.fields(Host)}
    assert {*ours} - {"contracts"} == {*theirs} - {"name"}
    for name, field in theirs.items():
        if name != "name":
            wanted = field.type | None if field.required else field.type
            assert ours[name] == wanted, name


def test_the_file_is_written_for_people() -> None:
    until = NOW + timedelta(days=1)
    entered = Entered(
        {"acme": Tenant("Acme Ltd.")},
        {"silver": promise(20e3, burst=4e3)},
        {"gold": host(), "silver": host("silver", 1234.5)},
        {
            ("gold", "r1"): Contract(class_name="silver", tenant="acme", valid_until=until),
            (ANYWHERE, UUID): promise(0.5),
        },
    )
    assert (
        toml_of(file_of(entered))
        == f"""\
version = 1

[tenants.acme]
description = "Acme Ltd."

[classes.silver]
guarantee_pps = "20kpps"
burst = 4000

[hosts.gold]
requests = "ipc:///run/gold/requests"
telemetry = "ipc:///run/gold/telemetry"
capacity_pps = "100kpps"

[hosts.gold.contracts.r1]
class = "silver"
valid_until = 2026-03-02 12:00:00+00:00
tenant = "acme"

[hosts.silver]
requests = "ipc:///run/silver/requests"
telemetry = "ipc:///run/silver/telemetry"
capacity_pps = "1.2345kpps"

[contracts.{UUID}]
guarantee_pps = 0.5
"""
    )
    assert '"capacity_pps": 100000,' in json_of(file_of(entered))


@pytest.mark.parametrize("rate", ['"100kpps"', '"0.1 Mp/s"', '"100000"', "100_000", "1e5"])
def test_a_rate_is_a_number_or_a_text_with_its_unit(rate: str) -> None:
    file = read_text(GOLD.replace('"100kpps"', rate)).file
    assert file.hosts["gold"].capacity_pps == 100e3


def test_a_bit_rate_is_written_and_read_with_its_unit() -> None:
    sold = Contract(guarantee_bps=50e6, ceiling_bps=1.5e9, packet_bytes=700)
    file = FleetFile(version=1, contracts={"r1": sold})
    text = toml_of(file)
    assert 'guarantee_bps = "50Mb/s"\nceiling_bps = "1.5Gb/s"\npacket_bytes = 700\n' in text
    assert read_text(text).file == file
    assert "write a bit rate" in mistakes(text.replace("50Mb/s", "50M"))[0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            'guarantee_pps = "50Mb/s"',
            "is not a packet rate (did you mean guarantee_bps? Else write",
        ),
        ('ceiling_bps = "20kpps"', "is not a bit rate (did you mean ceiling_pps? Else write"),
        ("guarantee_bps = 5", "it is below 1000 (write a bit rate"),
        ("guarantee_pps = nan", "it is not a number (write a packet rate"),
        ("packet_bytes = 1.5", "it is a number, not a whole number (write a whole number from 64"),
        ('weight = "2"', "it is a text, not a number (write a number from 0.001"),
        ("cost = 1e3", "it is above 100 (write a number from 0.01"),
        ("class = 5", "it is a whole number, not a text (write the name of a class"),
        ('tenant = "a b"', "it has the wrong form (write the name of a tenant"),
        ('zone = "' + 65 * "x" + '"', "it is longer than 64 (write a time zone"),
        ("valid_from = 2031-01-01", "it is a date without a time, not a date and time (write"),
        ('valid_until = "soon"', "it is no date and time (write a date and time with its zone"),
        ('hours = ["08:00"]', "it is a text, not a table (write a list of windows"),
        ('hours = { start = "08:00" }', "it is a table, not a list (write a list of windows"),
        ('measures = "warn"', "it is a text, not a list (write a list of measures"),
        ('punish = ["never"]', "(write never, when_harming or always)"),
        ('dry_run = "yes"', "it is a text, not true or false (write true or false)"),
    ],
)
def test_a_mistake_of_a_contract_is_told_with_what_to_write(line: str, said: str) -> None:
    field = line.partition(" ")[0]
    [mistake] = mistakes(f"version = 1\n[contracts.r1]\n{line}\n")
    assert mistake.startswith(f"fleet.toml:3: contracts.r1.{field}")
    assert said in mistake


def test_windows_that_are_too_many_are_counted() -> None:
    windows = 65 * '{ start = "08:00", end = "09:00" }, '
    [mistake] = mistakes(f"version = 1\n[contracts.r1]\nhours = [{windows}]\n")
    assert "contracts.r1.hours: 65 are too many (give at most 64)" in mistake


def test_json_is_known_by_its_brace() -> None:
    assert read_text('\n {"version": 1}').file == FleetFile(version=1)


def test_every_mistake_is_told_with_its_line_and_a_fix() -> None:
    text = (
        GOLD.replace("requests", "request", 1)
        + """
[hosts.gold.contracts.r1]
guarantee_pps = "20kps"
measures = ["warn", "lowr"]
hours = [{ start = "8:00", end = "18:00" }]
valid_until = 2031-01-01T00:00:00

["hosts"."a b"]

[tenants.acme]
descripton = "Acme"
"""
    )
    assert mistakes(text) == [
        "fleet.toml:4: hosts.gold.request: no such key (did you mean requests?)",
        (
            "fleet.toml:9: hosts.gold.contracts.r1.guarantee_pps: '20kps' is not a packet rate"
            ' (write a packet rate, such as "20kpps")'
        ),
        (
            "fleet.toml:10: hosts.gold.contracts.r1.measures[1]: no such choice: lowr"
            " (did you mean lower? write warn, lower, limit, pause or stop)"
        ),
        (
            "fleet.toml:11: hosts.gold.contracts.r1.hours[0].start: it has the wrong form"
            " (write a time of day, such as 08:30)"
        ),
        (
            "fleet.toml:12: hosts.gold.contracts.r1.valid_until: it has no time zone"
            " (write a date and time with its zone, such as 2031-01-01T00:00:00Z)"
        ),
        (
            "fleet.toml:14: hosts.a b: this is no name (write letters, digits, dots and dashes,"
            " the first a letter or a digit, at most 64)"
        ),
        "fleet.toml:17: tenants.acme.descripton: no such key (did you mean description?)",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "version: missing (add it: version = 1)"),
        ("version = 2", "version: no such choice: 2 (write 1)"),
        (
            "version = 1\nhosts = 3",
            "hosts: it is a whole number, not a table (write a table, such as [hosts.NAME])",
        ),
        ("version = 1\n[hosts.gold]\ncapacity_pps = nan", "hosts.gold.capacity_pps: "),
        ("version = 1\n[hosts.gold]\ncapacity_pps = 1e10", "hosts.gold.capacity_pps: "),
        ("version = 1\n[hosts.gold]\novercommit = 1", "hosts.gold.overcommit: "),
        ('{"version": 1, "tokens": {}}', "tokens: no such key"),
    ],
)
def test_a_document_of_the_wrong_form_is_refused(text: str, said: str) -> None:
    assert said in "\n".join(mistakes(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version = ", "not TOML"),
        ("version = 1\nversion = 1", "not TOML"),
        ("{", "not JSON"),
        ('{"version": 1, "version": 1}', "'version' is given twice"),
        ('{"version": NaN}', "NaN is no number"),
        ("x" * 5000, "a line of more than 4096 characters"),
        ("x = " + 2000 * "[" + 2000 * "]", "nests too deeply"),
        ('{"x": ' + 100_000 * "[" + 100_000 * "]" + "}", "nests too deeply"),
        ("x = 1" + 5000 // 100 * "0", "missing"),
    ],
)
def test_what_is_no_document_is_refused(text: str, said: str) -> None:
    with pytest.raises((SettingsError, FileMistakes), match=said):
        read_text(text)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for name, raw, said in (
        ("large", b"#" * (MAX_BYTES + 1), "larger than 16 MiB"),
        ("latin", b"\xff", "not UTF-8"),
    ):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(SettingsError, match=said):
            read_file(str(tmp_path / name))
    for path, said in ((str(tmp_path), "Is a directory"), ("/no/file", "No such file")):
        with pytest.raises(SettingsError, match=said):
            read_file(path)


def test_a_document_of_too_many_things_is_refused() -> None:
    many = {f"r{n}": Contract() for n in range(document.MOST_CONTRACTS)}
    file = FleetFile(
        version=1, contracts=many, hosts={"gold": HostEntry(contracts={"r": Contract()})}
    )
    with pytest.raises(Invalid, match="50001 in all"):
        refuse(size_problems(file))
    raw = msgspec.json.encode({"version": 1, "hosts": {key: {} for key in map(str, range(5001))}})
    with pytest.raises(msgspec.ValidationError, match="length <= 5000"):
        msgspec.json.decode(raw, type=FleetFile)
    assert "give at most 5000" in mistakes(raw.decode())[0]

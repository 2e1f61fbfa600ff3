"""Where keys stand in a text, as tomllib itself splits it into statements."""

import pytest

from common.toml_lines import key_lines

TEXT = '''# a comment
[daemon]
period_s = 1.0   # [no.table]

[router."a.b"]
actuator = { kind = "deadline", netns = "/run/netns/a", interfaces = [
  "eth0",
  "eth1",
] }
note = """
setpoint = 3
[router.c]
"""
setpoint = 5
router.x = 1
[[list]]
one = 1
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("daemon", 2),
        ("daemon.period_s", 3),
        ("router", 5),
        ("router.a.b", 5),
        ("router.a.b.actuator", 6),
        ("router.a.b.actuator.interfaces", 6),
        ("router.a.b.note", 10),
        ("router.a.b.setpoint", 14),
        ("router.a.b.router.x", 15),
        ("list", 16),
        ("list.one", 17),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_key_is_found_at_the_line_where_its_statement_begins(
    key: str, line: int, ends: str
) -> None:
    assert key_lines(TEXT.replace("\n", ends)).get(key) == line


def test_what_stands_within_a_text_is_no_key() -> None:
    assert "router.c" not in key_lines(TEXT)


def test_an_empty_inline_table_is_no_header() -> None:
    assert key_lines("[a]\nb = {}\nc = 1") == {"a": 1, "a.b": 2, "a.c": 3}


def test_after_a_statement_without_end_there_are_no_more_lines() -> None:
    assert key_lines("a = 1\nb = [\n" + "1,\n" * 500 + "]\nc = 1") == {"a": 1}

"""Names of files cannot command the terminal, nor a spreadsheet."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis.strategies import text
from rich.table import Table

from torchsite.cli.terminal import terminal
from torchsite.files import csv_table, visible

HOSTILE = "\x1b]0;owned\x07 \x1b[31m\x9b2J\x7f\r"


@given(text())
def test_what_is_visible_commands_nothing_and_stays_as_it_is(given):
    shown = visible(given)
    assert all(sign.isprintable() or not ord(sign) < 160 or sign in "\t\n" for sign in shown)
    assert visible(shown) == shown


@pytest.mark.parametrize("in_table", [False, True])
def test_no_escape_reaches_the_terminal(capsys, in_table):
    shown = HOSTILE
    if in_table:
        shown = Table("name")
        shown.add_row(HOSTILE)
    terminal().print(shown)
    said = capsys.readouterr().out
    assert "\\x1b]0;owned" in said
    assert not set(said) & set("\x1b\x07\x9b\x7f\r")


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r"])
def test_a_cell_is_no_formula(sign):
    content = csv_table([["name", "score"], [f"{sign}cmd|' /C calc'!A0", -0.5], [None, "a=b"]])
    assert list(csv.reader(io.StringIO(content, newline=""))) == [
        ["name", "score"],
        [f"'{visible(sign)}cmd|' /C calc'!A0", "-0.5"],
        ["", "a=b"],
    ]

"""Numbers of a command line: digits of ASCII, and nothing that is seen as another number."""

from __future__ import annotations

from datetime import timedelta

import click
import pytest

from clikit import jobspec
from jobspec_engine.cli.numbers import Limit, Whole
from jobspec_engine.cli.times import Age, At, Length, Rate, Since

TYPES = {
    "3": Whole(),
    "job=3": Limit(),
    "3d": Age(),
    "3h": Since(),
    "3s": Length(timedelta(0)),
    "3/s": Rate(),
    "2026-01-31T12:00": At(),
}
ARABIC = {ord(digit): 0x660 + int(digit) for digit in "0123456789"}


@pytest.mark.parametrize("text", TYPES)
def test_digits_of_other_scripts_are_refused(text):
    assert TYPES[text].convert(text, None, None) is not None
    with pytest.raises(click.BadParameter):
        TYPES[text].convert(text.translate(ARABIC), None, None)


@pytest.mark.parametrize("text", ["1_000", " 5", "+5", "5.0", "²", "", "-", "--1", "9" * 5000])
def test_what_is_no_whole_number_is_refused_with_what_is_expected(text):
    with pytest.raises(click.BadParameter, match="is not a whole number, such as 3"):
        Whole().convert(text, None, None)


def test_a_whole_number_may_be_negative_and_has_its_range():
    assert Whole().convert("-12", None, None) == -12
    with pytest.raises(click.BadParameter, match="0 is not in the range x>=1"):
        Whole(min=1).convert("0", None, None)


@pytest.mark.parametrize(
    "command", [("run",), ("cancel",), ("runs", "--limit"), ("worker", "--concurrency")]
)
def test_commands_take_whole_numbers(command):
    result = jobspec(*command, "٣")
    assert (result.exit_code, "`٣` is not a whole number" in result.stderr) == (2, True)

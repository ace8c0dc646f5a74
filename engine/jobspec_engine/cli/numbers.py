"""Whole numbers as they are written on a command line.

`int()` takes the digits of every script, underscores and white space as well. A number that a
person sees as another one, or as none, is refused.
"""

from __future__ import annotations

import re
from typing import Any

import click

_DIGITS = re.compile(r"[0-9]{1,400}")  # what is out of range is to be told as that


class Whole(click.IntRange):
    """A whole number, of a range if there is one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        text = str(value)  # a default is a number
        if not _DIGITS.fullmatch(text.removeprefix("-")):
            self.fail(f"`{text[:40]}` is not a whole number, such as 3", param, ctx)
        return int(super().convert(value, param, ctx))


class Limit(click.ParamType[tuple[str, int]]):
    """A job's id and how many of its runs: `job=3`."""

    name = "job=n"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return the two."""
        job_id, _, number = value.rpartition("=")
        if not job_id or not _DIGITS.fullmatch(number):
            self.fail("write a job and how many of its runs, such as `email.send=3`", param, ctx)
        return job_id, int(number)

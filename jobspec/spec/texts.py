"""Texts that are small languages: keys, conditions, durations and cron schedules.

Each is parsed by its own module, which speaks of places in the text it was given. Here those
places become places in the file: a caret stands inside the key even where YAML folds or escapes.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from jobspec.durations import DurationError, format_duration, parse_duration, parse_go_duration
from jobspec.keys import KeyTemplate, KeyTemplateError
from jobspec.load import ScalarNode
from jobspec.spec.fields import wrong_type
from jobspec.spec.wording import A_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jobspec.diagnostics import Diagnostic
    from jobspec.schedules import Schedule
    from jobspec.spec.fields import Fields, Findings

Choice = TypeVar("Choice", bound=str)

NO_TIME = timedelta(0)
_BEGIN_A_LENGTH = frozenset("0123456789+-.")
_CLOCKS_DO = {"skipped": "skip", "repeated": "repeat"}


def key(fields: Fields, name: str) -> KeyTemplate | None:
    """Return the key template of a field."""
    return fields.parsed(name, _key)


def condition(fields: Fields, name: str) -> str | None:
    """Return the CEL expression of a field that says yes or no."""
    return fields.parsed(name, _condition)


def cancellation(fields: Fields, name: str) -> str | None:
    """Return the condition of a cancellation, where the reference takes no function calls."""
    return fields.parsed(name, _cancellation)


def priority(fields: Fields, name: str) -> str | None:
    """Return the CEL expression of a field that gives a number."""
    return fields.parsed(name, _priority)


def schedule(fields: Fields, name: str) -> Schedule | None:
    """Return the cron schedule of a field."""
    return fields.parsed(name, _schedule)


def duration(
    fields: Fields, name: str, *, least: timedelta | None = None, most: timedelta | None = None
) -> timedelta | None:
    """Return the length of time of a field: more than nothing, from `least` to `most`."""
    return _in_range(fields, name, _length(fields, name, parse_duration), least, most)


def go_duration(fields: Fields, name: str, *, least: timedelta) -> timedelta | None:
    """Return the length of time of a field that the reference reads by Go's own rules."""
    return _in_range(fields, name, _length(fields, name, parse_go_duration), least, None)


def _length(fields: Fields, name: str, parse: Callable[[str], timedelta]) -> timedelta | None:
    """Return the length of time of a field, as one of the two dialects reads it."""

    def read(text: str, node: ScalarNode, findings: Findings) -> timedelta | None:
        try:
            return parse(text)
        except DurationError as error:
            findings.report("JS170", node, str(error), error.help, span=node.locate(error.span))
            return None

    return None if _is_number(fields, name) else fields.parsed(name, read)


def _is_number(fields: Fields, name: str) -> bool:
    """Tell whether a length of time is a number, which lacks a unit, and report it."""
    node = fields.value_of(name)
    value = node.value if isinstance(node, ScalarNode) else None
    if node is None or isinstance(value, bool) or not isinstance(value, int | float):
        return False
    wrong_type(fields.findings, node, name, A_LENGTH)
    return True


def window(
    fields: Fields, name: str, words: tuple[Choice, ...], *, least: timedelta
) -> Choice | timedelta | None:
    """Return the value of a field that is one of some words, or a length of time."""
    node = fields.value_of(name)
    text = node.value if isinstance(node, ScalarNode) else None
    if not isinstance(text, str) or text[:1] in _BEGIN_A_LENGTH:
        return duration(fields, name, least=least)
    return fields.choice(name, words, besides="a length of time such as `24h`")


@lru_cache(maxsize=64)
def template(text: str) -> KeyTemplate:
    """Return the template that a text is. Those of the job at hand are kept: they are asked twice.

    Raises KeyTemplateError.
    """
    return KeyTemplate.parse(text)


def _key(text: str, node: ScalarNode, findings: Findings) -> KeyTemplate | None:
    try:
        return template(text)
    except KeyTemplateError as error:
        _rehome(error.diagnostics, node, findings)
        return None


def _condition(text: str, node: ScalarNode, findings: Findings) -> str | None:
    from jobspec.cel import check_condition  # noqa: PLC0415  few jobs have conditions

    _rehome(check_condition(text), node, findings)
    return text


def _priority(text: str, node: ScalarNode, findings: Findings) -> str | None:
    from jobspec.cel import check_condition  # noqa: PLC0415  few jobs have conditions

    _rehome(check_condition(text, "number"), node, findings)
    return text


def _cancellation(text: str, node: ScalarNode, findings: Findings) -> str | None:
    from jobspec.cel import calls  # noqa: PLC0415  few jobs have conditions

    for name, span in calls(text):
        message = f"`{name}` can't be used in the condition of a cancellation"
        help_ = "compare fields as they are sent, such as `event.data.id == async.data.id`"
        findings.report("JS403", node, message, help_, span=node.locate(span))
    return _condition(text, node, findings)


def _rehome(found: Iterable[Diagnostic], node: ScalarNode, findings: Findings) -> None:
    """Report findings about a text as what they are in its file, each with its second places."""
    for one in found:
        related = tuple(
            replace(other, source=node.source, span=node.locate(other.span))
            for other in one.related
        )
        moved = one.moved(node.source, node.locate(one.span))
        findings.append(replace(moved, related=related))


def _schedule(text: str, node: ScalarNode, findings: Findings) -> Schedule | None:
    from jobspec.schedules import Schedule, ScheduleError  # noqa: PLC0415  needs the time zones

    try:
        found = Schedule.parse(text)
    except ScheduleError as error:
        findings.report("JS180", node, str(error), error.help, span=node.locate(error.span))
        return None
    if found.ever_fires:
        _report_clock_changes(found, node, findings)
    else:
        message = "no date matches this schedule, so it never fires"
        findings.report("JS404", node, message, "correct the day or the month")
    return found


def _report_clock_changes(found: Schedule, node: ScalarNode, findings: Findings) -> None:
    """Warn of what the clocks of the schedule's zone do to it in the year that begins now."""
    changes = {one.kind: one for one in found.clock_changes(datetime.now(UTC))}
    if not changes:
        return
    does = [
        f"{_CLOCKS_DO[kind]} {changes[kind].local:%H:%M}" for kind in _CLOCKS_DO if kind in changes
    ]
    message = f"when the clocks of `{found.zone}` change, they {' and '.join(does)}"
    help_ = (
        "the job does not run where a time is skipped, and runs twice where it is repeated:"
        " choose a time that no change touches, or UTC"
    )
    findings.report("JS405", node, message, help_)


def _in_range(
    fields: Fields,
    name: str,
    length: timedelta | None,
    least: timedelta | None,
    most: timedelta | None,
) -> timedelta | None:
    """Report a length of time that is out of range."""
    node = fields.value_of(name)
    if length is None or node is None:
        return None
    if length <= NO_TIME:
        help_ = "write a length of time such as `30s`, or leave the field out"
        fields.findings.report("JS305", node, f"`{name}` must be longer than nothing", help_)
    elif least is not None and length < least:
        message = f"`{name}` must be at least {format_duration(least)}"
        help_ = f"write `{format_duration(least)}` or more"
        fields.findings.report("JS305", node, message, help_)
    elif most is not None and length > most:
        message = f"`{name}` must be at most {format_duration(most)}"
        help_ = f"write `{format_duration(most)}` or less"
        fields.findings.report("JS305", node, message, help_)
    else:
        return length
    return None

"""Texts that are small languages: keys, conditions, durations and cron schedules.

Each is parsed by its own module, which speaks of places in the text it was given. Here those
places become places in the file: a caret stands inside the key even where YAML folds or escapes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from jobspec.durations import DurationError, format_duration, parse_duration, parse_go_duration
from jobspec.keys import KeyTemplate, KeyTemplateError
from jobspec.schedules import Schedule, ScheduleError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobspec.diagnostics import Diagnostic
    from jobspec.load import ScalarNode
    from jobspec.spec.fields import Fields, Findings

NO_TIME = timedelta(0)


def key(fields: Fields, name: str) -> KeyTemplate | None:
    """Return the key template of a field."""
    return fields.parsed(name, _key)


def condition(fields: Fields, name: str) -> str | None:
    """Return the CEL expression of a field, checked as the reference does when registering."""
    return fields.parsed(name, _condition)


def schedule(fields: Fields, name: str) -> Schedule | None:
    """Return the cron schedule of a field."""
    return fields.parsed(name, _schedule)


def duration(
    fields: Fields, name: str, *, least: timedelta | None = None, most: timedelta | None = None
) -> timedelta | None:
    """Return the length of time of a field: more than nothing, from `least` to `most`."""
    length = fields.parsed(name, _duration)
    return _in_range(fields, name, length, least, most)


def go_duration(fields: Fields, name: str, *, least: timedelta) -> timedelta | None:
    """Return the length of time of a field that the reference reads by Go's own rules."""
    return _in_range(fields, name, fields.parsed(name, _go_duration), least, None)


def _key(text: str, node: ScalarNode, findings: Findings) -> KeyTemplate | None:
    try:
        return KeyTemplate.parse(text)
    except KeyTemplateError as error:
        _rehome(error.diagnostics, node, findings)
        return None


def _condition(text: str, node: ScalarNode, findings: Findings) -> str | None:
    from jobspec.cel import check_expression  # noqa: PLC0415  few jobs have conditions

    found = check_expression(text)
    _rehome(found, node, findings)
    return None if found else text


def _rehome(found: Iterable[Diagnostic], node: ScalarNode, findings: Findings) -> None:
    findings.extend(one.moved(node.source, node.locate(one.span)) for one in found)


def _schedule(text: str, node: ScalarNode, findings: Findings) -> Schedule | None:
    try:
        return Schedule.parse(text)
    except ScheduleError as error:
        findings.report("JS180", node, str(error), error.help, span=node.locate(error.span))
        return None


def _duration(text: str, node: ScalarNode, findings: Findings) -> timedelta | None:
    try:
        return parse_duration(text)
    except DurationError as error:
        findings.report("JS170", node, str(error), error.help, span=node.locate(error.span))
        return None


def _go_duration(text: str, node: ScalarNode, findings: Findings) -> timedelta | None:
    try:
        return parse_go_duration(text)
    except DurationError as error:
        findings.report("JS170", node, str(error), error.help, span=node.locate(error.span))
        return None


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
        fields.findings.report("JS305", node, f"`{name}` must be longer than nothing")
    elif least is not None and length < least:
        message = f"`{name}` must be at least {format_duration(least)}"
        fields.findings.report("JS305", node, message)
    elif most is not None and length > most:
        message = f"`{name}` must be at most {format_duration(most)}"
        fields.findings.report("JS305", node, message)
    else:
        return length
    return None

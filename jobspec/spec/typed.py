"""Keys and conditions, held to the events that they are about, once all files are read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from jobspec.diagnostics import Related
from jobspec.jobs import EventTrigger
from jobspec.keys.fault import Fault, quoted
from jobspec.keys.lint import lint, unseparated
from jobspec.source import Span
from jobspec.spec.places import PlacedCondition, event_names, placed_conditions
from jobspec.spec.ticks import ticks_lack, ticks_repeat
from jobspec.spec.wording import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jobspec.cel import Path
    from jobspec.events import Event
    from jobspec.load import ScalarNode
    from jobspec.spec.events import DeclaredEvent
    from jobspec.spec.fields import Findings
    from jobspec.spec.places import PlacedKey
    from jobspec.spec.rules import ReadJob

_NOT_OURS = re.compile(r"inngest/|.*\*", re.DOTALL)  # the reference's own events, and wildcards


class _Place(NamedTuple):
    """What a job is checked against."""

    events: Mapping[str, DeclaredEvent]
    findings: Findings

    def typed(self, names: Iterable[str]) -> tuple[Event, ...]:
        """Return those events that have a schema."""
        declared = [self.events[name] for name in names if name in self.events]
        return tuple(one.typed for one in declared if one.typed is not None)


def check_events(
    jobs: Iterable[ReadJob], declared: Iterable[DeclaredEvent], findings: Findings
) -> None:
    """Report keys and conditions that do not fit the events they are about, and traps of keys."""
    events: dict[str, DeclaredEvent] = {}
    for event in declared:
        first = events.setdefault(str(event.name.value), event)
        if first is not event:
            _report_twice(event, first, findings)
    place = _Place(events, findings)
    for read in jobs:
        names = dict.fromkeys(
            trigger.event for trigger in read.job.triggers if isinstance(trigger, EventTrigger)
        )
        _check_job(read, tuple(names), place)


def _report_twice(event: DeclaredEvent, first: DeclaredEvent, findings: Findings) -> None:
    related = (Related("first declared here", first.name.source, first.name.span),)
    message = f"the event {quoted(str(event.name.value))} is declared twice"
    findings.report("JS214", event.name, message, "keep one of the two", related)


def _check_job(read: ReadJob, names: tuple[str, ...], place: _Place) -> None:
    for name in event_names(read.fields.node) if place.events else ():
        _check_declared(name, place)
    typed = place.typed(names)
    for key in read.keys:
        for fault in _key_faults(read, key, typed, is_typed=len(typed) == len(names) > 0):
            _report(fault, key.node, place.findings)
    for condition in placed_conditions(read.fields.node):
        for fault in _condition_faults(condition, names, place):
            _report(fault, condition.node, place.findings)


def _report(fault: Fault, node: ScalarNode, findings: Findings) -> None:
    span = node.locate(fault.span)
    findings.report(fault.code, node, fault.message, fault.advice, span=span)


def _check_declared(name: ScalarNode, place: _Place) -> None:
    """Report an event that is not declared where others are."""
    text = str(name.value)
    if text not in place.events and not _NOT_OURS.match(text):
        help_ = suggestion(text, tuple(place.events)) or "declare it under `events:`"
        message = f"the event {quoted(text)} is not declared"
        place.findings.report("JS201", name, message, help_)


def _key_faults(
    read: ReadJob, key: PlacedKey, typed: tuple[Event, ...], *, is_typed: bool
) -> Iterable[Fault]:
    """Return what is wrong with a key, once each, however many events it is wrong for."""
    faults = list(lint(key.template, key.option))
    triggers, idempotency = read.fields.value_of("triggers"), read.job.idempotency
    faults += ticks_lack(key.template, triggers)
    if key.option == "idempotency" and idempotency and idempotency.window == "forever":
        faults += ticks_repeat(key.template, triggers)
    if not is_typed:
        faults += unseparated(key.template)
    if typed:
        from jobspec.events import check_key  # noqa: PLC0415  not needed where nothing has a schema

        is_whole = read.job.on_missing == "reject"
        for event in typed:
            faults += check_key(key.template, event, is_whole=is_whole)
    return _once(faults)


def _condition_faults(
    condition: PlacedCondition, names: tuple[str, ...], place: _Place
) -> Iterable[Fault]:
    from jobspec.events import check_path  # noqa: PLC0415  few jobs have conditions

    about = {
        "event": names if condition.event is None else (condition.event,),
        "async": () if condition.other is None else (condition.other,),
    }
    return _once(
        fault
        for path in _paths(condition)
        for fault in check_path(path, place.typed(about.get(path.root, ())))
    )


def _paths(condition: PlacedCondition) -> Iterator[Path]:
    """Yield the paths that a condition reads from events."""
    from jobspec import cel  # noqa: PLC0415  few jobs have conditions

    text = str(condition.node.value)
    if not condition.is_match:
        yield from (path for path in cel.paths(text) if path.root in ("event", "async"))
        return
    names = list(re.finditer(r"[^.]+", text))
    steps = tuple(cel.Step(name[0], Span(*name.span())) for name in names)
    yield from (cel.Path(root, steps, Span(0, len(text))) for root in ("event", "async"))


def _once(faults: Iterable[Fault]) -> Iterable[Fault]:
    """Return the first fault of each kind and place."""
    first: dict[tuple[str, Span], Fault] = {}
    for fault in faults:
        first.setdefault((fault.code, fault.span), fault)
    return first.values()

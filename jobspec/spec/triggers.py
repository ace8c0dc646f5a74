"""The triggers of a job: event names and cron schedules."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from jobspec.diagnostics import Related
from jobspec.jobs import CronTrigger, EventTrigger, Trigger
from jobspec.load import MappingNode, Node, ScalarNode, SequenceNode
from jobspec.spec import models
from jobspec.spec.fields import Fields, Findings, item_of, read_line, wrong_type
from jobspec.spec.texts import condition, duration, schedule

MOST_TRIGGERS = 10
LONGEST_EVENT_NAME = 255
LONGEST_JITTER = timedelta(minutes=5)
Missed = Literal["skip", "once", "all"]
_MISSED: tuple[Missed, ...] = ("skip", "once", "all")


def triggers(fields: Fields) -> tuple[Trigger, ...]:
    """Read `triggers`, a list of at most ten (configs.jsonl)."""
    items = fields.items("triggers")
    if isinstance(fields.value_of("triggers"), SequenceNode) and not items:
        _report_none(fields)
    fields.at_most("triggers", MOST_TRIGGERS, items)
    _report_duplicates(items, fields.findings)
    read = [_trigger(item, fields.findings) for item in items]
    return tuple(one for one in read if one is not None)


def _report_none(fields: Fields) -> None:
    message = "nothing starts this job: its list of triggers is empty"
    help_ = (
        "write an event or a cron schedule, or say that it is only added by its name or invoked:"
        " `# jobspec: ignore[JS408] only added by its name`"
    )
    fields.findings.report("JS408", fields.node_of("triggers"), message, help_)


def _trigger(node: Node, findings: Findings) -> Trigger | None:
    """Read one trigger: a mapping, or the name of an event alone."""
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        event = read_line(node, "triggers", findings, most=LONGEST_EVENT_NAME)
        return EventTrigger(event) if event else None
    if not isinstance(node, MappingNode):
        wrong_type(findings, node, item_of("triggers"), "the name of an event or a mapping")
        return None
    own = Fields(node, models.Trigger, findings)
    event = own.line("event", most=LONGEST_EVENT_NAME)
    only = condition(own, "if")
    cron = schedule(own, "cron")
    jitter = duration(own, "jitter", most=LONGEST_JITTER)
    missed: Missed | None = own.choice("missed", _MISSED)
    _report_kind(own)
    if event:
        return EventTrigger(event, only)
    return CronTrigger(cron, jitter or timedelta(0), missed or "skip") if cron else None


def _report_kind(own: Fields) -> None:
    """Report a trigger that is not one of the two kinds, or has fields of the other."""
    if "event" in own and "cron" in own:
        message = "a trigger is an event or a cron schedule, and this is both"
        also = own.beside("event", "the event")
        own.findings.report("JS312", own.key_of("cron"), message, "write two triggers", (also,))
    elif "event" not in own and "cron" not in own:
        message = "a trigger needs an event or a cron schedule"
        own.findings.report("JS311", own.anchor, message, "add `event` or `cron`")
    for field, other in (("if", "cron"), ("jitter", "event"), ("missed", "event")):
        if field in own and other in own and not ("event" in own and "cron" in own):
            _report_stray(own, field, other)


def _report_stray(own: Fields, field: str, kind: str) -> None:
    message = f"`{field}` does nothing beside `{kind}`"
    related = (own.beside(kind, "this kind of trigger"),)
    own.findings.report("JS315", own.key_of(field), message, "remove it", related)


def _report_duplicates(items: tuple[Node, ...], findings: Findings) -> None:
    """Report events and schedules that come twice; the reference compares their texts."""
    seen: dict[tuple[str, str], ScalarNode] = {}
    for item in items:
        for kind, node in _starts(item):
            first = seen.setdefault((kind, str(node.value)), node)
            if first is not node:
                message = f"the trigger `{node.value}` is there twice"
                related = (Related("first here", first.source, first.span),)
                findings.report("JS310", node, message, "remove one of them", related)


def _starts(item: Node) -> list[tuple[str, ScalarNode]]:
    """Return the texts that say when a trigger starts its job."""
    if isinstance(item, ScalarNode):
        nodes: list[tuple[str, Node | None]] = [("event", item)]
    elif isinstance(item, MappingNode):
        nodes = [(kind, item.get(kind)) for kind in ("event", "cron")]
    else:
        nodes = []
    return [
        (kind, node)
        for kind, node in nodes
        if isinstance(node, ScalarNode) and isinstance(node.value, str) and node.value
    ]

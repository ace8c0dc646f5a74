"""Each option of a job: from the fields a person wrote to the typed option of a compiled job.

Limits are those that the reference enforces (configs.jsonl), and where it takes a value without
looking at it, those that the value needs to mean anything.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from jobspec import jobs
from jobspec.load import MappingNode, Node, ScalarNode, SequenceNode
from jobspec.spec import models, texts
from jobspec.spec.fields import Fields, Findings, item_of, read_mapping, read_whole, wrong_type
from jobspec.spec.texts import condition, duration, go_duration, key, window

MOST_CONCURRENCY_LIMITS = 2
MOST_CANCELLATIONS = 5
BURST = 1  # as the reference's Python SDK sends it where nobody says
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
WEEK = timedelta(days=7)
Mode = Literal["skip", "cancel"]
Scope = Literal["fn", "env", "account"]
Window = Literal["forever", "while-active"]
MODES: tuple[Mode, ...] = ("skip", "cancel")
SCOPES: tuple[Scope, ...] = ("fn", "env", "account")
WINDOWS: tuple[Window, ...] = ("forever", "while-active")


def idempotency(fields: Fields) -> jobs.Idempotency | None:
    """Read `idempotency`: a key, or a mapping of one and how long it counts."""
    if not isinstance(fields.value_of("idempotency"), MappingNode):
        template = key(fields, "idempotency")
        return jobs.Idempotency(template) if template else None
    own = fields.within("idempotency", models.Idempotency)
    if own is None:
        return None
    template = key(own, "key")
    length: Window | timedelta | None = window(own, "window", WINDOWS, least=SECOND)
    return jobs.Idempotency(template, length or "forever") if template else None


def debounce(fields: Fields) -> jobs.Debounce | None:
    """Read `debounce`, whose period is from a second to a week."""
    own = fields.within("debounce", models.Debounce)
    if own is None:
        return None
    template = key(own, "key")
    period = duration(own, "period", least=SECOND, most=WEEK)
    timeout = duration(own, "timeout")
    if period and timeout and timeout < period:
        _report_short_timeout(own)
    return jobs.Debounce(period, template, timeout) if period else None


def _report_short_timeout(own: Fields) -> None:
    message = "`timeout` is shorter than `period`, so the period never takes effect"
    related = (own.beside("period", "a burst is held back for this long after each event"),)
    help_ = "`timeout` is the longest a burst is held back: make it several periods long"
    own.findings.report("JS400", own.node_of("timeout"), message, help_, related)


def rate_limit(fields: Fields) -> jobs.RateLimit | None:
    """Read `rateLimit`, whose period is at most a day."""
    own = fields.within("rateLimit", models.RateLimit)
    if own is None:
        return None
    template = key(own, "key")
    limit = own.whole("limit", least=1)
    period = duration(own, "period", most=DAY)
    return jobs.RateLimit(limit, period, template) if limit and period else None


def throttle(fields: Fields) -> jobs.Throttle | None:
    """Read `throttle`. The reference makes a limit of 0 one of 1; here it is refused."""
    own = fields.within("throttle", models.Throttle)
    if own is None:
        return None
    template = key(own, "key")
    limit = own.whole("limit", least=1)
    burst = own.whole("burst", least=0)
    period = duration(own, "period")
    if limit is None or period is None:
        return None
    return jobs.Throttle(limit, period, BURST if burst is None else burst, template)


def concurrency(fields: Fields) -> tuple[jobs.Concurrency, ...]:
    """Read `concurrency`: a number, a limit, or a list of at most two limits."""
    node = fields.value_of("concurrency")
    if node is None:
        return ()
    if isinstance(node, SequenceNode):
        fields.report_empty("concurrency")
        fields.at_most("concurrency", MOST_CONCURRENCY_LIMITS, node.items)
        read = [_limit(item, fields.findings) for item in node.items]
    elif isinstance(node, MappingNode):
        read = [_limit(node, fields.findings, fields.key_of("concurrency"))]
    else:
        read = [_plain_limit(node, fields.findings)]
    return tuple(one for one in read if one is not None)


def _plain_limit(node: ScalarNode, findings: Findings) -> jobs.Concurrency | None:
    if not isinstance(node.value, int):
        wrong_type(findings, node, "concurrency", "a number, a mapping or a list")
        return None
    limit = read_whole(node, "concurrency", findings, least=0, most=None)
    return _unless_unlimited(limit, node, findings)


def _limit(node: Node, findings: Findings, anchor: Node | None = None) -> jobs.Concurrency | None:
    mapping = read_mapping(node, item_of("concurrency"), findings)
    if mapping is None:
        return None
    own = Fields(mapping, models.Concurrency, findings, anchor)
    template = key(own, "key")
    scope: Scope | None = own.choice("scope", SCOPES)
    limit = own.whole("limit", least=0)
    if scope in ("env", "account") and "key" not in own:
        _report_scope_without_key(own, scope)
    limited = _unless_unlimited(limit, own.value_of("limit"), findings)
    if limited is None:
        return None
    return jobs.Concurrency(limited.limit, template, scope or "fn")


def _report_scope_without_key(own: Fields, scope: str) -> None:
    message = f"a limit of the scope `{scope}` needs a key"
    help_ = f"add `key`, which picks the runs that the whole {scope} counts together"
    own.findings.report("JS314", own.node_of("scope"), message, help_)


def _unless_unlimited(
    limit: int | None, node: Node | None, findings: Findings
) -> jobs.Concurrency | None:
    """Return a limit that is one: the reference takes 0 for no limit at all."""
    if limit == 0 and node is not None:
        help_ = "leave it out if that is meant, or write the number of runs"
        findings.report("JS409", node, "a concurrency of 0 is no limit, it stops nothing", help_)
    return jobs.Concurrency(limit) if limit else None


def priority(fields: Fields) -> str | None:
    """Read `priority` and return its expression."""
    own = fields.within("priority", models.Priority)
    return texts.priority(own, "run") if own else None


def batch_events(fields: Fields) -> jobs.BatchEvents | None:
    """Read `batchEvents`: two events or more, gathered for a second or longer."""
    own = fields.within("batchEvents", models.BatchEvents)
    if own is None:
        return None
    template = key(own, "key")
    max_size = own.whole("maxSize", least=2)
    timeout = go_duration(own, "timeout", least=SECOND)
    only = condition(own, "if")
    return jobs.BatchEvents(max_size, timeout, template, only) if max_size and timeout else None


def singleton(fields: Fields) -> jobs.Singleton | None:
    """Read `singleton`."""
    own = fields.within("singleton", models.Singleton)
    if own is None:
        return None
    template = key(own, "key")
    mode: Mode | None = own.choice("mode", MODES)
    return jobs.Singleton(mode, template) if mode else None


def cancel_on(fields: Fields) -> tuple[jobs.Cancellation, ...]:
    """Read `cancelOn`, a list of at most five events."""
    fields.report_empty("cancelOn")
    items = fields.items("cancelOn")
    fields.at_most("cancelOn", MOST_CANCELLATIONS, items)
    read = [_cancellation(item, fields.findings) for item in items]
    return tuple(one for one in read if one is not None)


def _cancellation(node: Node, findings: Findings) -> jobs.Cancellation | None:
    mapping = read_mapping(node, item_of("cancelOn"), findings)
    if mapping is None:
        return None
    own = Fields(mapping, models.Cancellation, findings)
    event, match = own.line("event"), own.text("match")
    only, timeout = texts.cancellation(own, "if"), duration(own, "timeout")
    if event and "if" not in own and "match" not in own:
        _report_cancels_all(own, event)
    return jobs.Cancellation(event, only, match, timeout) if event else None


def _report_cancels_all(own: Fields, event: str) -> None:
    message = f"every event `{event}` cancels every run of this job"
    help_ = "say which runs by `if`, such as `event.data.id == async.data.id`, or by `match`"
    own.findings.report("JS407", own.node_of("event"), message, help_)


def timeouts(fields: Fields) -> jobs.Timeouts | None:
    """Read `timeouts`."""
    fields.report_empty("timeouts")
    own = fields.within("timeouts", models.Timeouts)
    if own is None:
        return None
    return jobs.Timeouts(duration(own, "start"), duration(own, "finish"), duration(own, "attempt"))

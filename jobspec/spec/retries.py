"""The option `retry`: how long a run waits for its next attempt, and after which errors."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from jobspec.backoff import Backoff, ErrorRetry, Policy, Retry
from jobspec.spec import models
from jobspec.spec.fields import Fields, item_of, read_mapping
from jobspec.spec.texts import duration
from jobspec.spec.wording import addition

if TYPE_CHECKING:
    from jobspec.load import Node, ScalarNode
    from jobspec.spec.fields import Findings

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
POLICIES: tuple[Policy, ...] = ("reference", "exponential", "fixed")
POLICIES_OF_ERRORS: tuple[Policy, ...] = (*POLICIES, "never")
# Which fields say more about a policy.
_FIELDS: dict[Policy, tuple[str, ...]] = {
    "reference": ("jitter",),
    "exponential": ("delay", "max", "factor", "jitter"),
    "fixed": ("delay", "jitter"),
    "never": (),
}
MOST_GROWTH = 100
_CLASS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def retry(fields: Fields) -> Retry:
    """Read `retry`. Without it the reference's table holds."""
    fields.report_empty("retry")
    own = fields.within("retry", models.Retry)
    if own is None:
        return Retry()
    own.report_empty("on")
    policy: Policy | None = own.choice("policy", POLICIES)
    backoff = _backoff(own, policy or "reference") if policy or "policy" not in own else Backoff()
    read = [_of_error(item, fields.findings) for item in own.items("on")]
    return Retry(backoff, tuple(one for one in read if one is not None))


def _of_error(node: Node, findings: Findings) -> ErrorRetry | None:
    mapping = read_mapping(node, item_of("on"), findings)
    if mapping is None:
        return None
    own = Fields(mapping, models.ErrorRetry, findings)
    error = own.parsed("error", _class)
    policy: Policy | None = own.choice("policy", POLICIES_OF_ERRORS)
    backoff = _backoff(own, policy) if policy else None
    return ErrorRetry(error, backoff) if error and backoff else None


def _class(text: str, node: ScalarNode, findings: Findings) -> str | None:
    """Read the `module:name` of a class. Nothing is imported here."""
    if _CLASS.fullmatch(text):
        return text
    message = f"`{text}` is not the place of a class"
    help_ = "write its module and its name, such as `myapp.errors:Invalid` or `builtins:ValueError`"
    findings.report("JS319", node, message, help_)
    return None


def _backoff(own: Fields, policy: Policy) -> Backoff:
    """Read the fields of a policy. What is wrong with them is reported, and does not hold."""
    _report_other_fields(own, policy)
    delay = duration(own, "delay", most=WEEK)
    longest = duration(own, "max", most=WEEK)
    factor = own.number("factor", least=1, most=MOST_GROWTH)
    jitter = own.number("jitter", least=0, most=1)
    if "delay" in _FIELDS[policy] and "delay" not in own:
        message = f"the policy `{policy}` needs a `delay`"
        own.findings.report("JS302", own.anchor, message, addition("delay"))
    if delay and longest and longest < delay:
        _report_short_maximum(own)
    delay = delay or timedelta(0)
    return Backoff(policy, delay, longest or max(DAY, delay), factor or 2.0, jitter or 0.0)


def _report_other_fields(own: Fields, policy: Policy) -> None:
    for name in ("delay", "max", "factor", "jitter"):
        if name in own and name not in _FIELDS[policy]:
            message = f"`{name}` does nothing with the policy `{policy}`"
            takers = " or ".join(f"`{one}`" for one in POLICIES if name in _FIELDS[one])
            help_ = f"remove it, or write the policy {takers}"
            own.findings.report("JS318", own.key_of(name), message, help_)


def _report_short_maximum(own: Fields) -> None:
    message = "`max` is shorter than `delay`, so the wait never grows"
    related = (own.beside("delay", "the first wait is this long"),)
    help_ = "`max` is the longest wait: make it several times as long, or write the policy `fixed`"
    own.findings.report("JS410", own.node_of("max"), message, help_, related)

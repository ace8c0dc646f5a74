"""How findings about specs are worded: what a value is, what was meant, what to write instead."""

from __future__ import annotations

import re

from jobspec.load import MappingNode, Node, ScalarNode, SequenceNode
from jobspec.phrases import joined

# What SDKs send over the wire, or call it in code, by the name that a spec file has for it.
_ELSEWHERE = {
    "cancel": "cancelOn",
    "cancellations": "cancelOn",
    "expression": "if",
    "fn_id": "id",
    "slug": "id",
    "ttl": "timeout",
    "batch": "batchEvents",
    "schedule": "cron",
    "function": "handler",
}

MOST_WRITTEN_OUT = 1e6  # a larger number was hardly meant

A_LENGTH = "a length of time"

_DIGITS = re.compile(r"[0-9]+")  # those of other scripts are none to a reader of YAML

# What to do about a field that is nowhere, beside a field that is there: what it has elsewhere is
# said in another way here.
_ADVICE = {
    ("timezone", "cron"): 'write the zone in the schedule: `cron: "TZ=Europe/Berlin 0 2 * * *"`',
    ("timezone", "triggers"): (
        'write the zone in the schedule: `triggers: [{cron: "TZ=Europe/Berlin 0 2 * * *"}]`'
    ),
    (
        "attempts",
        "policy",
    ): "write how often in `retries`, a field of the job, such as `retries: 3`",
    ("attempts", "retries"): "write `retries`, which does not count the first attempt",
    ("backoff", "policy"): "write `policy: exponential` and `delay: 30s`",
    ("backoff", "retry"): "write `retry: {policy: exponential, delay: 30s}`",
}
_ALSO = {
    "tz": "timezone",
    "zone": "timezone",
    "maxattempts": "attempts",
    "maxretries": "attempts",
    "retries": "attempts",
}

# What to write for each field that some mapping must have.
_EXAMPLES = {
    "delay": "30s",
    "error": "myapp.errors:Invalid",
    "event": "email.send",
    "id": "email.send",
    "key": "event.data.id",
    "limit": "10",
    "maxSize": "50",
    "mode": "skip",
    "period": "2m",
    "policy": "never",
    "run": "event.data.paid ? 120 : 0",
    "timeout": "5s",
    "triggers": "[{event: email.send}]",
}


def described(node: Node) -> str:
    """Return what a node is, in words."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list"
    match node.value:
        case None:
            return "nothing"
        case bool():
            return f"the boolean `{str(node.value).lower()}`"
        case str():
            return f"the text `{_shortened(node.value)}`" if node.value else "an empty text"
        case _:
            return f"the number `{node.value}`"


def advice(name: str, known: tuple[str, ...]) -> str:
    """Return a help for a field that is not one of the known ones of a mapping."""
    plain = _plain(name)
    for beside in known:
        found = _ADVICE.get((_ALSO.get(plain, plain), beside))
        if found is not None:
            return found
    return suggestion(name, known) or f"there are {listed(known, 'and')}"


def instead(node: Node, name: str, expected: str) -> str | None:
    """Return what to do about a value that is not what was expected, where that is plain to see."""
    value = node.value if isinstance(node, ScalarNode) else ""
    if name == "retry" and isinstance(value, int) and not isinstance(value, bool):
        return f"write `retries: {value}`; `retry` says how long to wait"
    if name == "an item of `jobs`":
        return "write `- id:` with the name of the job, and its other fields below"
    if expected == A_LENGTH and isinstance(value, int | float) and value > 0:
        return f"write it with a unit, such as `{value}s`"
    if value is None:
        return "write a value, or leave the field out"
    if expected == "a list":
        return "write a list, with a dash before each item"
    if expected == "a text" and not isinstance(value, str):
        return "put it in quotes"
    if expected == "a whole number" and isinstance(value, str) and _DIGITS.fullmatch(value):
        return f"write `{value}`, without quotes"
    if expected == "a whole number" and isinstance(value, float) and abs(value) < MOST_WRITTEN_OUT:
        return f"write `{value:.0f}`" if value.is_integer() else "leave the fraction out"
    return None


def addition(name: str) -> str:
    """Return a help that says what to write for a field that is missing."""
    return f"add it, such as `{name}: {_EXAMPLES[name]}`"


def suggestion(name: str, known: tuple[str, ...]) -> str | None:
    """Return a help that names what was probably meant, where something comes near."""
    return did_you_mean(nearest(name, known))


def did_you_mean(name: str | None) -> str | None:
    """Return the help that names something, if there is something to name."""
    return f"did you mean `{name}`?" if name is not None else None


def nearest(name: str, known: tuple[str, ...]) -> str | None:
    """Return what was probably meant, where something comes near."""
    elsewhere = _ELSEWHERE.get(name)
    if elsewhere in known:
        return elsewhere
    from difflib import get_close_matches  # noqa: PLC0415  only needed where something is wrong

    near = {_plain(one): one for one in known}
    found = get_close_matches(_plain(name), near, n=1, cutoff=0.6)
    return near[found[0]] if found else None


def listed(choices: tuple[str, ...], word: str = "or") -> str:
    """Return `` `a`, `b` or `c` ``."""
    return joined([f"`{one}`" for one in choices], word)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else f"{line[:39]}…"

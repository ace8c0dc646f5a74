"""Explained keys, as a table for people and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from jobspec.keyed import OPTIONS, Effect, effects
from jobspec.report.columns import columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobspec.keys.trace import Trace, TracedTerm


@dataclass(frozen=True, slots=True)
class TracedKey:
    """The explained key of a template, and the option it is the key of, if one was named."""

    template: str
    trace: Trace
    option: str | None = None


def render(keys: Sequence[TracedKey]) -> str:
    """Return a table of terms for each key, then the key and what options do with it."""
    return "\n".join(map(_key, keys))


def render_json(keys: Sequence[TracedKey]) -> str:
    """Return `{"keys": [...]}` with what the tables show, nothing cut."""
    return json.dumps({"keys": [_plain(one) for one in keys]}, indent=2) + "\n"


def _key(one: TracedKey) -> str:
    key = one.trace.key
    title = f"{one.option}: {one.template}\n" if one.option else ""
    headings = ("term", "value", "adds", "how")
    terms = columns(headings, [_term(term) for term in one.trace.terms])
    result = f"key      {_quoted(key.text)}\noutcome  {key.outcome}\n"
    applied = _effects(one)
    return f"{title}{terms}\n{result}" + (f"\n{_effect_table(applied)}" if applied else "")


def _term(term: TracedTerm) -> tuple[str, str, str, str]:
    value = "" if term.type == "missing" else _quoted(term.value)
    adds = "" if term.rendered is None else _quoted(term.rendered)
    return str(term.term), value, adds, term.how


def _effect_table(applied: Sequence[Effect]) -> str:
    if all(effect.here == effect.reference for effect in applied):
        return columns(("option", "does"), [(one.option, one.here) for one in applied])
    rows = [(one.option, one.here, one.reference) for one in applied]
    return columns(("option", "here", "on the reference"), rows)


def _effects(one: TracedKey) -> tuple[Effect, ...]:
    """Return the effects on the option of a key, or on all where none is named."""
    wanted = OPTIONS if one.option is None else (one.option,)
    return tuple(effect for effect in effects(one.trace.key) if effect.option in wanted)


def _quoted(value: object) -> str:
    """Return a value as JSON, whole numbers without the `.0` that they have as floats."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def _plain(one: TracedKey) -> dict[str, object]:
    return {
        "option": one.option,
        "template": one.template,
        "terms": [_plain_term(term) for term in one.trace.terms],
        "key": one.trace.key.text,
        "outcome": one.trace.key.outcome,
        "effects": [asdict(effect) for effect in _effects(one)],
    }


def _plain_term(term: TracedTerm) -> dict[str, object]:
    return {
        "term": str(term.term),
        "type": term.type,
        "value": term.value,
        "rendered": term.rendered,
        "how": term.how,
        "keySoFar": term.so_far.text,
    }

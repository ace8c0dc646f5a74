"""Where a job has its keys and its conditions, and which events they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jobspec.keys import KeyTemplateError
from jobspec.load import MappingNode, Node, ScalarNode, SequenceNode
from jobspec.spec.texts import template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobspec.keys import KeyTemplate

_WITH_KEYS = ("debounce", "rateLimit", "throttle", "concurrency", "batchEvents", "singleton")


class PlacedKey(NamedTuple):
    """The key of an option, such as `debounce`, and the text that it was written as."""

    option: str
    template: KeyTemplate
    node: ScalarNode


class PlacedCondition(NamedTuple):
    """A condition. `event` is its own event, None where it is about all that start the job.

    `other` is the event that is `async` in it. `is_match` where it is the path of a `match`.
    """

    node: ScalarNode
    event: str | None = None
    other: str | None = None
    is_match: bool = False


def placed_keys(job: MappingNode) -> tuple[PlacedKey, ...]:
    """Return the keys of a job, those that are valid."""
    idempotency = job.get("idempotency")
    written = [("idempotency", idempotency)]
    for option in ("idempotency", *_WITH_KEYS):
        written += [(option, one.get("key")) for one in _mappings(job.get(option))]
    found = [_placed_key(option, node) for option, node in written]
    return tuple(one for one in found if one is not None)


def _placed_key(option: str, node: Node | None) -> PlacedKey | None:
    text = _text(node)
    if text is None:
        return None
    try:
        return PlacedKey(option, template(str(text.value)), text)
    except KeyTemplateError:  # reported where it was read
        return None


def placed_conditions(job: MappingNode) -> Iterator[PlacedCondition]:
    """Yield the conditions of a job, and the paths it matches events by."""
    for trigger in _mappings(job.get("triggers")):
        yield from _placed(trigger.get("if"), name_of(trigger))
    for option, field in (("priority", "run"), ("batchEvents", "if")):
        for one in _mappings(job.get(option)):
            yield from _placed(one.get(field))
    for cancellation in _mappings(job.get("cancelOn")):
        other = name_of(cancellation)
        yield from _placed(cancellation.get("if"), other=other)
        yield from _placed(cancellation.get("match"), other=other, is_match=True)


def _placed(
    node: Node | None,
    event: str | None = None,
    other: str | None = None,
    *,
    is_match: bool = False,
) -> Iterator[PlacedCondition]:
    text = _text(node)
    if text is not None:
        yield PlacedCondition(text, event, other, is_match)


def event_names(job: MappingNode) -> Iterator[ScalarNode]:
    """Yield the names of all events that a job speaks of: that start it, or cancel its runs."""
    for option in ("triggers", "cancelOn"):
        for item in _items(job.get(option)):
            name = _text(item.get("event") if isinstance(item, MappingNode) else item)
            if name is not None:
                yield name


def name_of(trigger: MappingNode) -> str | None:
    """Return the name of the event of a trigger or a cancellation."""
    name = _text(trigger.get("event"))
    return None if name is None else str(name.value)


def _items(node: Node | None) -> tuple[Node, ...]:
    if isinstance(node, SequenceNode):
        return node.items
    return () if node is None else (node,)


def _mappings(node: Node | None) -> list[MappingNode]:
    return [one for one in _items(node) if isinstance(one, MappingNode)]


def _text(node: Node | None) -> ScalarNode | None:
    is_text = isinstance(node, ScalarNode) and isinstance(node.value, str) and node.value
    return node if is_text and isinstance(node, ScalarNode) else None

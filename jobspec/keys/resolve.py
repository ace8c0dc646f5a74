"""A key template compiled to a plain function of the event.

The function has two ways to the same key. The fast one is generated Python for the everyday event,
dicts all the way to texts and numbers; whatever else it meets, it leaves to the general one, which
is the reference's rules in full (keys.jsonl).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile
from math import isfinite
from operator import add
from typing import Any, Final, Literal, NamedTuple, cast

from jobspec.keys.decode import Json, Place, decode, has_surrogate, is_leaf, not_json
from jobspec.keys.goformat import LISTED_NULL, Special, go_text, number_text
from jobspec.keys.terms import Field, Term

Event = Mapping[str, Any]


class Key(NamedTuple):
    """What a key template gives for an event.

    `outcome` says what an option does with it: `key` counts; `absent` (nothing known, or the
    boolean false) means that the option does not apply; `error` has the text `<invalid>`.
    """

    text: str
    outcome: Literal["key", "absent", "error"]


Resolve = Callable[[Event], Key]

MISSING: Final = Special("missing")
_ERROR: Final = Special("no such overload: _+_")
_NUMBERS = (int, float)


class Step(NamedTuple):
    """One step of looking up: the field `name` of the value that step number `parent` found."""

    parent: int
    name: str


@dataclass(frozen=True, slots=True)
class Lookups:
    """The paths of a template as steps that are walked once each, parents first.

    Step 0 is the event itself; `places` has what each step is called, `ends` the step that each
    path ends at.
    """

    steps: tuple[Step, ...]
    places: tuple[Place, ...]
    ends: Mapping[tuple[str, ...], int]

    def inner(self) -> frozenset[int]:
        """Return the steps that others start from."""
        return frozenset(step.parent for step in self.steps[1:])


def compile_terms(terms: Sequence[Term]) -> Resolve:
    """Return the function that resolves a template of these terms.

    It takes an event, any mapping with `data`, and returns its `Key`, in time linear in the terms.
    It raises `EventError` where a value that the key reads is not JSON.
    """
    lookups = lookups_of(term.path for term in terms if isinstance(term, Field))

    def general(event: Event) -> Key:
        return key_of(values_of(terms, lookups, event))

    return _fast(terms, lookups, general)


def values_of(terms: Sequence[Term], lookups: Lookups, event: Event) -> list[Json | Special]:
    """Return the decoded value of each term, `MISSING` where the event does not have it."""
    found = _look_up(lookups, event)
    return [
        found[lookups.ends[term.path]] if isinstance(term, Field) else term.text for term in terms
    ]


def key_of(values: Sequence[Json | Special]) -> Key:
    """Return the key that values add up to."""
    total = _total(values)
    if total is _ERROR:
        return Key("<invalid>", "error")
    return Key(go_text(total), "absent" if total is False else "key")


def lookups_of(paths: Iterable[tuple[str, ...]]) -> Lookups:
    """Return how the paths of a template are looked up."""
    steps = [Step(0, "event")]
    numbers: dict[Step, int] = {}
    ends: dict[tuple[str, ...], int] = {}
    for path in paths:
        number = 0
        for name in ("data", *path):
            step = Step(number, name)
            number = numbers.setdefault(step, len(steps))
            if number == len(steps):
                steps.append(step)
        ends[path] = number
    places = [Place("event")]
    places.extend(Place(f".{step.name}", places[step.parent]) for step in steps[1:])
    return Lookups(tuple(steps), tuple(places), ends)


def _look_up(lookups: Lookups, event: Event) -> list[Json | Special]:
    """Return the decoded value of every step that a path ends at, `MISSING` where unknown.

    A path is unknown, too, where one that extends it is: `event.data.a + event.data.a.b` with no
    `b` has no `a` either. So a missing value takes the steps it started from with it.
    """
    steps, places = lookups.steps, lookups.places
    found: list[Any] = [event]
    for parent, name in steps[1:]:
        found.append(_child(found[parent], name, places[parent]))
    for number in range(len(steps) - 1, 0, -1):
        if found[number] is MISSING:
            found[steps[number].parent] = MISSING
    for number in lookups.ends.values():
        if found[number] is not MISSING:
            found[number] = decode(found[number], places[number])
    return found


def _child(value: object, name: str, place: Place) -> object:
    """Return the field `name` of the value at `place`."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value).get(name, MISSING)
    if value is MISSING or (place.parent and is_leaf(value)):
        return MISSING
    raise not_json(value, place)


def _total(values: Sequence[Json | Special]) -> Json | Special:
    """Add the values from left to right, as the reference's `+` does, two at a time.

    A missing one leaves the other; two missing ones are false. Values of two types become text,
    and what is text stays it, so only the first values of one type need a closer look.
    """
    known = [value for value in values if value is not MISSING]
    if all(value is MISSING for value in values[:2]):
        known.insert(0, False)
    alike = list(takewhile(lambda value: type(value) is type(known[0]), known))
    total, rest = _total_alike(alike)
    rest += known[len(alike) :]
    return "".join(map(go_text, (total, *rest))) if rest else total


def _total_alike(values: list[Any]) -> tuple[Json | Special, list[Json | Special]]:
    """Add values of one type; return the sum, and those that came too late to be part of it."""
    if isinstance(values[0], str):
        return "".join(values), []
    if isinstance(values[0], float):
        return reduce(add, values), []  # not sum(), which rounds once and not at every step
    if isinstance(values[0], list):
        return _join_arrays(values), []
    if len(values) == 1:
        return values[0], []
    return _ERROR, values[2:]


def _join_arrays(arrays: list[list[Any]]) -> Any:
    """Join arrays: an empty one changes nothing, two others make the nulls in them `NULL_VALUE`."""
    filled = [array for array in arrays if array]
    if len(filled) <= 1:
        return filled[0] if filled else []
    return [LISTED_NULL if item is None else item for array in filled for item in array]


def _fast(terms: Sequence[Term], lookups: Lookups, general: Resolve) -> Resolve:
    names: dict[str, Any] = {
        "general": general,
        "join": "".join,
        "plain": _plain,
        "has_surrogate": has_surrogate,
        "Key": Key,
    }
    source = fast_source(terms, lookups)
    exec(compile(source, "<key>", "exec"), names)  # noqa: S102 - generated, with nothing of the text but reprs of strings
    resolve: Resolve = names["resolve"]
    return resolve


def fast_source(terms: Sequence[Term], lookups: Lookups) -> str:
    """Return the Python source of the fast way: one line for a step, one item for a term.

    Only exact dicts are stepped into, since a `defaultdict` would grow by it. `join` refuses what
    is not a str, and so does `plain` what is no number either. A `Key` is made by tuple's own
    constructor, since a NamedTuple's takes twice the time.
    """
    steps = lookups.steps
    lines = [
        f"        v{number} = {_subscript(steps[number])}\n"
        f"        if type(v{number}) is not dict: return general(v0)"
        for number in sorted(lookups.inner() - {0})
    ]
    items = [
        _subscript(steps[lookups.ends[term.path]]) if isinstance(term, Field) else repr(term.text)
        for term in terms
    ]
    values = f"({', '.join(items)},)"
    again = f"text = join(map(plain, {values}))" if _becomes_text(terms) else "return general(v0)"
    return "\n".join(
        (
            "new = tuple.__new__",
            "def resolve(v0):",
            "    if type(v0) is not dict: return general(v0)",
            "    try:",
            *lines,
            f"        try: text = join({values})",
            f"        except TypeError: {again}",
            "    except (KeyError, TypeError, OverflowError): return general(v0)",
            "    if text.isascii() or not has_surrogate(text): return new(Key, (text, 'key'))",
            "    return general(v0)",
        )
    )


def _becomes_text(terms: Sequence[Term]) -> bool:
    """Tell whether each value adds its text, as after a literal: two numbers in front add up."""
    return len(terms) == 1 or not all(isinstance(term, Field) for term in terms[:2])


def _plain(value: Any) -> str:
    """Return the text that a text or a number adds; raise `TypeError` for anything else."""
    if type(value) is str:
        return value
    if type(value) not in _NUMBERS or not isfinite(number := float(value)):
        raise TypeError
    return number_text(number)


def _subscript(step: Step) -> str:
    return f"v{step.parent}[{step.name!r}]"

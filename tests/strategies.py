"""What Hypothesis generates for several tests: key templates, events, texts that are neither."""

from __future__ import annotations

from functools import reduce

from hypothesis import strategies as st

# Few names, so that paths meet: in events, in each other, and as each other's beginnings.
NAMES = ("a", "b", "c", "A1", "_x", "vars", "xvars", "data", "event", "for", "package")
SPACES = ("", "", "", " ", "\n", "\t ", "\f", "\r\n")
ESCAPES = (
    *(rf"\{control}" for control in "abfnrtv\"'`?\\"),
    *(r"\x41", r"\X7f", r"\u00e9", r"\uFFFF", r"\U0001F600", r"\101", r"\377", r"\x00"),
)
AWKWARD = (
    "vars.",
    "vars.a",
    "+",
    "//",
    "%s",
    "{x}",
    "é",
    "日本",
    "\U0001f642",
    "\x00",
    "\x7f",
    "\u2028",
)

spaces = st.sampled_from(SPACES)
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(tuple)


@st.composite
def field_texts(draw, of=paths):
    """A field as somebody may write it, with white space where it is allowed."""
    names = ("event", "data", *draw(of))
    return reduce(lambda text, name: f"{text}{draw(spaces)}.{draw(spaces)}{name}", names)


@st.composite
def literal_texts(draw):
    """A quoted literal."""
    quote = draw(st.sampled_from("'\""))
    plain = st.characters(exclude_characters="\\\n\r" + quote, exclude_categories=["Cs"])
    piece = st.one_of(plain, st.sampled_from(ESCAPES), st.sampled_from(AWKWARD))
    pieces = [text for text in draw(st.lists(piece, max_size=6)) if quote not in text.lstrip("\\")]
    return quote + "".join(pieces) + quote


@st.composite
def templates(draw, max_terms=6):
    """The text of a key template."""
    term = st.one_of(field_texts(), field_texts(), literal_texts())
    terms = draw(st.lists(term, min_size=1, max_size=max_terms))
    return draw(spaces) + _joined(draw, terms) + draw(spaces)


def _joined(draw, terms):
    return reduce(lambda text, term: f"{text}{draw(spaces)}+{draw(spaces)}{term}", terms)


weird_floats = st.sampled_from(
    [
        -0.0,
        0.0,
        1e6,
        999999.0,
        1e21,
        1e-4,
        9.9e-5,
        5e-324,
        1.7976931348623157e308,
        2.0**53,
        0.1 + 0.2,
    ]
)
numbers = st.one_of(
    weird_floats,
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-1074, 1023).map(lambda power: 2.0**power),  # where rounding is lopsided
    st.integers(-(2**70), 2**70),
    st.integers(-1000, 10_000_000),
)
texts = st.one_of(
    st.text(max_size=6),  # lone surrogates among them, as json.loads gives them
    st.text(alphabet="\ud83d\ude42\ud800\udc00aé", max_size=4),
    st.sampled_from(["", "NULL_VALUE", "<nil>", "1e+06", "no such overload: _+_", "false"]),
)
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(NAMES), texts), inner, max_size=4),
    ),
    max_leaves=12,
)
events = st.fixed_dictionaries(
    {"name": st.just("test")},
    optional={
        "data": st.one_of(st.dictionaries(st.sampled_from(NAMES), values, max_size=6), values)
    },
)


@st.composite
def events_for(draw, paths):
    """An event in which most of the given paths lead somewhere."""
    event = draw(events)
    data = event.get("data")
    if not isinstance(data, dict):
        return event
    for path in paths:
        if draw(st.booleans()):
            _put(data, path, draw(values))
    return event


def _put(data, path, value):
    for name in path[:-1]:
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            return
    data[path[-1]] = value


KEY_PIECES = (
    *(
        "event",
        "data",
        "event.data.a",
        "event.data.",
        "a",
        "1",
        "1.5",
        "in",
        "true",
        "null",
        "size",
    ),
    *(
        "'x'",
        '"y"',
        "r'z'",
        "b'z'",
        "'''",
        '"""',
        "//",
        "${",
        "{{",
        "}}",
        "&&",
        "||",
        "==",
        ".?",
        "?.",
    ),
    *("'", '"', "`", "\\", "\n", " ", "\t", "é", "\ud800", "\u201c", "\u00a0", "\ufeff"),
    *"+-*/%!<>=?:.,;@#$&|()[]{}_",
)
almost_templates = st.lists(st.sampled_from(KEY_PIECES), max_size=12).map("".join)


@st.composite
def broken_templates(draw):
    """A key template with one to three characters put in, taken out or replaced."""
    text = draw(templates())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        piece = draw(st.one_of(st.just(""), st.sampled_from(KEY_PIECES)))
        text = text[:at] + piece + text[at + draw(st.integers(0, 2)) :]
    return text

"""The faults a text can have as a key template: how each is told, and what to write instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobspec.keys.fault import SHOWN_LENGTH, Fault, quoted
from jobspec.source import Span

if TYPE_CHECKING:
    from jobspec.keys.scan import Token

_ESCAPES = re.compile(
    r"""\\(?:(?P<legal>[abfnrtv"'`?\\]|[xX][0-9A-Fa-f]{2}|[0-3][0-7]{2}
                     |u(?![Dd][89A-Fa-f])[0-9A-Fa-f]{4}
                     |U(?!0000[Dd][89A-Fa-f])00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4})
          |[xX][0-9A-Fa-f]?|u[0-9A-Fa-f]{0,4}|U[0-9A-Fa-f]{0,8}|[0-7]{1,3}|.)""",
    re.VERBOSE,
)
_FIELD_IN_PLACEHOLDER = re.compile(r"event\.data(\.\w+)+")
_SURROGATES = re.compile("[\ud800-\udfff]+")


def empty(text: str) -> Fault:
    """Tell of a text with nothing in it but white space."""
    advice = "write at least one field, such as `event.data.id`"
    return Fault("JS101", "the key is empty", Span(0, len(text)), advice)


def unclosed_string(token: Token) -> Fault:
    """Tell of `'x`, up to the end of its line."""
    quote = next(char for char in token.text if char in "'\"")
    message = "this string is never closed"
    return Fault("JS102", message, token.span, f"close it with {quote} on the same line")


def escapes(token: Token) -> list[Fault]:
    """Return a fault for each escape in a quoted string that CEL does not know."""
    illegal = [match for match in _ESCAPES.finditer(token.text) if match["legal"] is None]
    return [_escape(match, token) for match in illegal]


def surrogates(token: Token) -> list[Fault]:
    """Return a fault for each half of a surrogate pair in a quoted string."""
    message, advice = "half of a surrogate pair is not a character", "write the whole character"
    spans = [Span(*match.span()) for match in _SURROGATES.finditer(token.text)]
    return [Fault("JS123", message, span.shifted(token.span.start), advice) for span in spans]


def _escape(match: re.Match[str], token: Token) -> Fault:
    span = Span(*match.span()).shifted(token.span.start)
    code = int(match[0][2:] or "0", 16) if match[0][1] in "uU" else 0
    if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
        message = f"the escape {quoted(match[0])} is no character"
        return Fault(
            "JS103", message, span, "write a code point up to 10FFFF, outside D800 to DFFF"
        )
    message = f"there is no escape {quoted(match[0])}"
    return Fault(
        "JS103", message, span, r"leave the backslash out, or write an escape of CEL, such as `\\`"
    )


def special_string(token: Token) -> Fault:
    """Tell of `r'x'`, `b'x'`, `'''x'''`, `f'x'`."""
    advice = "write a plain text in single or double quotes, on one line"
    return Fault("JS104", f"{_string_name(token.text)} can't be part of a key", token.span, advice)


def _string_name(text: str) -> str:
    prefix = text[: min(text.find(quote) for quote in "'\"" if quote in text)].lower()
    if not prefix:
        return "a triple-quoted string"
    if set(prefix) <= set("rb"):
        return "a bytes string" if "b" in prefix else "a raw string"
    return f"a string with the prefix {quoted(prefix)}"


def missing_plus(span: Span) -> Fault:
    """Tell of the second term of `event.data.a 'x'`."""
    return Fault("JS105", "two terms with no `+` between them", span, "put a `+` before this one")


def dangling_plus(token: Token, side: str) -> Fault:
    """Tell of a `+` with nothing before or after it; `side` says which."""
    advice = f"write a field or a quoted text {side} it, or drop the `+`"
    return Fault("JS106", f"there is nothing {side} this `+`", token.span, advice)


def outside_data(names: list[Token]) -> Fault:
    """Tell that a path starts anywhere but at `event.data`."""
    span = Span(names[0].span.start, names[-1].span.end)
    path = ".".join(name.text for name in names)
    if names[0].text == "event":
        message = f"{quoted(path)} is not under `event.data`"
        return Fault("JS107", message, span, _advice_inside_event(names))
    message = f"{quoted(path)} is not a field of the event"
    return Fault("JS107", message, span, _advice_root(names))


def _advice_inside_event(names: list[Token]) -> str:
    if _resembles(names[1].text, "data"):
        return f"did you mean `{_path(['data', *(name.text for name in names[2:])])}`?"
    return "a key reads only `event.data`; send the value there, as a field of the data"


def _advice_root(names: list[Token]) -> str:
    texts = [name.text for name in names]
    if texts[0] == "data" and len(texts) > 1:
        return f"write `{_path(texts)}`"
    if _resembles(texts[0], "event") and len(texts) > 2:
        return f"did you mean `{_path(['data', *texts[2:]])}`?"
    if len(texts) == 1:
        return f"write `{_path(['data', *texts])}` for a field, `'{texts[0]}'` for a text"
    return "a key reads only `event.data`: write `event.data.` and the field's path"


def _path(names: list[str]) -> str:
    shown = ".".join(("event", *names))
    return shown if len(shown) <= SHOWN_LENGTH else "event.data.<path>"


def _resembles(word: str, name: str) -> bool:
    """Tell whether a word is a name but for its case and a letter or two."""
    word = word.lower()
    return abs(len(word) - len(name)) <= 1 and len(set(word) ^ set(name)) <= 1 + (len(name) > 4)


def no_field(names: list[Token]) -> Fault:
    """Tell of `event` and `event.data`, which would make the key a dump of the event."""
    span = Span(names[0].span.start, names[-1].span.end)
    what = quoted(".".join(name.text for name in names))
    advice = "name a field of the data, such as `event.data.id`"
    return Fault("JS108", f"{what} names no field", span, advice)


def reserved_field(token: Token) -> Fault:
    """Tell of `in` in `event.data.in`."""
    message = f"{quoted(token.text)} is a reserved word and can't name a field"
    advice = "send the value under another name"
    return Fault("JS109", message, token.span, advice)


def function_call(span: Span) -> Fault:
    """Tell of `size(event.data.a)` and `event.data.a.size()`."""
    advice = "send the value ready for use as a field of the data, and name that"
    return Fault("JS110", "a function call can't be part of a key", span, advice)


def parentheses(span: Span) -> Fault:
    """Tell of `(event.data.a)`."""
    advice = "leave them out: terms are added from left to right, and grouping changes the key"
    return Fault("JS111", "parentheses can't be part of a key", span, advice)


def indexing(span: Span, inside: str) -> Fault:
    """Tell of `['a']` and `[0]`; `inside` is what stands between the brackets."""
    name = inside.strip()[1:-1]
    if inside.strip()[:1] in {"'", '"'} and re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        advice = f"write `.{name}`"
    else:
        advice = "send the value as a field of its own, and name that"
    return Fault("JS112", "indexing with [] can't be part of a key", span, advice)


def number(text: str, span: Span) -> Fault:
    """Tell of `1.5`, with its sign."""
    advice = f"write it as a text: `'{text}'`"
    return Fault("JS113", "a number can't be part of a key", span, advice)


def operator(token: Token, *, in_name: bool) -> Fault:
    """Tell of any operator but `+`; `in_name` for the minus that `event.data.order-id` has."""
    name = "a ternary `? :`" if token.text == "?" else f"an operator {quoted(token.text)}"
    advice = "a key only joins with `+`; send the result as a field of the data, and name that"
    if in_name:
        advice = "send the value under a name of letters, digits and `_`: this is a minus"
    return Fault("JS114", f"{name} can't be part of a key", token.span, advice)


def constant(token: Token) -> Fault:
    """Tell of `true`, `false` and `null`."""
    message = f"the constant {quoted(token.text)} can't be part of a key"
    return Fault("JS115", message, token.span, f"write it as a text: `'{token.text}'`")


def collection(opening: str, span: Span) -> Fault:
    """Tell of `[event.data.a]` or `{'a': 1}`, by its opening bracket."""
    name = "a list" if opening == "[" else "a map"
    advice = "join the fields with `+` and a separator: `event.data.a + '/' + event.data.b`"
    return Fault("JS116", f"{name} can't be part of a key", span, advice)


def comment(token: Token) -> Fault:
    """Tell of `// note`, and of `# note`, which is none."""
    advice = "put it into the file, outside the key"
    return Fault("JS117", "a comment can't be part of a key", token.span, advice)


def leading_dot(token: Token) -> Fault:
    """Tell of the first dot in `.event.data.a`."""
    return Fault("JS118", "a leading dot can't be part of a key", token.span, "leave the dot out")


def optional_field(token: Token) -> Fault:
    """Tell of `.?` and `?.`."""
    message = f"an optional field, {quoted(token.text)}, can't be part of a key"
    advice = "write a plain `.`: a field that is missing is left out of the key anyway"
    return Fault("JS119", message, token.span, advice)


def placeholder(token: Token) -> Fault:
    """Tell of `${event.data.a}`, `{{ event.data.a }}`, `$.data.a`."""
    message = f"a placeholder, {quoted(token.text)}, can't be part of a key"
    written = _FIELD_IN_PLACEHOLDER.search(token.text)
    field = written[0] if written else "event.data.id"
    advice = f"write the field as it is, and join it with `+`: `{field} + '/x'`"
    return Fault("JS120", message, token.span, advice)


def wrong_quotes(token: Token) -> Fault:
    """Tell of a text in curly quotes or in backquotes."""
    name = "backquotes" if token.text.startswith("`") else "curly quotes"
    advice = "write straight quotes around a text, and none around a field"
    return Fault("JS121", f"{name} do not quote a text", token.span, advice)


def broken_path(span: Span, piece: str) -> Fault:
    """Tell of `piece`, which can't name a field, or of a dot with no name after it."""
    if not piece:
        message = "the name of a field is missing after this dot"
        return Fault(
            "JS122", message, span, "write the field's name after the dot, or drop the dot"
        )
    message = f"{quoted(piece)} can't be the name of a field"
    advice = "send the value under a name of letters, digits and `_` that starts with no digit"
    return Fault("JS122", message, span, advice)


def field_of_text(span: Span) -> Fault:
    """Tell of `.a` in `'x'.a`."""
    return Fault("JS122", "a quoted text has no fields", span, "join the two with `+`")


def unexpected(token: Token) -> Fault:
    """Tell of a character that means nothing in a key."""
    message = f"{quoted(token.text)} has no place in a key"
    return Fault(
        "JS123", message, token.span, "join fields and quoted texts with `+`, nothing else"
    )

"""Findings that a comment silences: `# jobspec: ignore[JS407] reason`.

It stands on the line of the finding, or alone on the line above. A value over several lines counts
as one. In Python it stands in the declaration of the job or alone above it, and speaks of all of
it. What makes a file or a key unreadable can't be silenced: there is nothing to go on with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from jobspec.diagnostics import RULES, Diagnostic
from jobspec.load import comments, declaration_comments, scalar_lines
from jobspec.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jobspec.load import Comment

_OURS = re.compile(r"#+\s*jobspec:")
_IGNORE = re.compile(r"#+\s*jobspec:\s*ignore\[(?P<codes>[^\]]*)\](?P<reason>.*)")
_CODE = re.compile(r"[^\s,]+")
_ABOUT_IGNORES = frozenset({"JS440", "JS441", "JS442", "JS443", "JS444"})
_FORM = "write `# jobspec: ignore[JS407] reason`"


class _Code(NamedTuple):
    """A code in a comment, and its place in the file."""

    code: str
    span: Span


@dataclass(frozen=True, slots=True)
class _Ignore:
    """A comment that silences some codes on some lines. `reason` is empty where it has none.

    `source` is the text that the comment stands in, and `lines` those of the text that was read:
    the two differ where a declaration in Python was written out.
    """

    source: Source
    comment: Comment
    codes: tuple[_Code, ...]
    reason: str
    lines: range

    def covers(self, found: Diagnostic, line: int) -> bool:
        """Tell whether it silences a finding on a line."""
        return line in self.lines and any(one.code == found.code for one in self.codes)


def without_ignored(
    findings: Sequence[Diagnostic], sources: Iterable[Source], *, unsought: tuple[str, ...] = ()
) -> Iterator[Diagnostic]:
    """Yield the findings that no comment silences, and what is wrong with the comments.

    `sources` are the texts that were read; those of the findings are looked at besides. Comments
    for codes that begin with one of `unsought` may silence nothing: not all of that was looked for.
    """
    by_name = {source.name: source for source in (*sources, *(one.source for one in findings))}
    about: dict[str, list[Diagnostic]] = {name: [] for name in by_name}
    for found in findings:
        about[found.source.name].append(found)
    for name, source in by_name.items():
        yield from _of_source(about[name], source, unsought=unsought)


def can_be_ignored(code: str) -> bool:
    """Tell whether a comment may silence a code: those of meaning, not those of form."""
    return code.startswith(("JS2", "JS4")) and code not in _ABOUT_IGNORES


def _of_source(
    findings: list[Diagnostic], source: Source, *, unsought: tuple[str, ...]
) -> Iterator[Diagnostic]:
    written, every = _commented(source)
    ours = [comment for comment in every if _OURS.match(comment.text)]
    ignores = list(_ignores(ours, written, source)) if ours else []
    used: set[_Code] = set()
    for found in findings:
        line = source.position(found.span.start).line if ignores else 0
        silencing = [
            one for one in ignores if one.covers(found, line) and can_be_ignored(found.code)
        ]
        used |= {code for one in silencing for code in one.codes if code.code == found.code}
        if not silencing:
            yield found
    readable = {one.comment for one in ignores}
    yield from (_unreadable(one, written) for one in ours if one not in readable)
    for one in ignores:
        yield from _faults(one, used, unsought=unsought)


def _commented(source: Source) -> tuple[Source, tuple[Comment, ...]]:
    """Return the text that a person wrote, and its comments: for a declaration, its Python file."""
    if source.declared_at is not None:
        return declaration_comments(source.declared_at)
    return source, comments(source)


def _ignores(ours: Iterable[Comment], written: Source, source: Source) -> Iterator[_Ignore]:
    values = scalar_lines(source)
    for comment in ours:
        match = _IGNORE.fullmatch(comment.text)
        codes = [] if match is None else list(_CODE.finditer(match["codes"]))
        if match is None or not codes:
            continue
        start = comment.span.start + match.start("codes")
        placed = tuple(_Code(one[0], Span(*one.span()).shifted(start)) for one in codes)
        lines = _covered(comment, source, values)
        yield _Ignore(written, comment, placed, match["reason"].strip(" \t:—-"), lines)


def _covered(comment: Comment, source: Source, values: Sequence[range]) -> range:
    """Return the lines that a comment speaks of: all of what was made of a declaration."""
    last = source.position(len(source.text)).line
    if source.is_made:
        return range(1, last + 1)
    line = comment.line
    while line < last and source.line(line).lstrip()[:1] in ("#", ""):
        line += 1
    over = [lines for lines in values if line in lines]
    return over[0] if over else range(line, line + 1)


def _faults(
    ignore: _Ignore, used: set[_Code], *, unsought: tuple[str, ...]
) -> Iterator[Diagnostic]:
    """Yield what is wrong with a comment that silences."""
    source = ignore.source
    if not ignore.reason:
        message = "this silences a finding without saying why"
        yield _finding("JS440", message, source, ignore.comment.span, "write the reason behind it")
    for one in ignore.codes:
        if one.code not in RULES:
            message = f"there is no code `{one.code}`"
            advice = "write the code that the finding shows"
            yield _finding("JS441", message, source, one.span, advice)
        elif not can_be_ignored(one.code):
            message = f"`{one.code}` can't be silenced"
            yield _finding("JS444", message, source, one.span, "correct what it finds")
        elif one not in used and not one.code.startswith(unsought):
            message = f"there is no `{one.code}` to silence here"
            yield _finding("JS442", message, source, one.span, "remove it")


def _unreadable(comment: Comment, source: Source) -> Diagnostic:
    message = "this comment speaks to jobspec, and is not understood"
    return _finding("JS443", message, source, comment.span, _FORM)


def _finding(code: str, message: str, source: Source, span: Span, advice: str) -> Diagnostic:
    return Diagnostic(code, RULES[code].severity, message, source, span, advice)

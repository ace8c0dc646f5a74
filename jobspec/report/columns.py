"""Rows of texts under headings, in columns of terminal cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.report.full import cells

if TYPE_CHECKING:
    from collections.abc import Sequence

GAP = "  "
WIDEST = 48  # cells of a column; what is longer is cut


def columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return headings and rows as lines. All but the last column are padded, and cut if long."""
    shown = [[*(_cut(text) for text in row[:-1]), row[-1]] for row in (headings, *rows)]
    widths = [max(map(cells, column)) for column in zip(*shown, strict=True)]
    return "".join(f"{_line(row, widths)}\n" for row in shown)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = (text + " " * (width - cells(text)) for text, width in zip(row, widths, strict=True))
    return GAP.join(padded).rstrip()


def _cut(text: str) -> str:
    if cells(text) <= WIDEST:
        return text
    while cells(text) >= WIDEST:
        text = text[: min(len(text) - 1, WIDEST)]
    return f"{text}…"

"""Whether a text that matches a pattern can have a separator in it.

Only what is certain is said. Patterns that are not bound to both ends of the text (`^…$`), and
those with look-arounds, back references or the like, say nothing.
"""

from __future__ import annotations

import re
import warnings

_ATOM = r"""
    (?P<atom> \\[dDwWsS] | \\[^A-Za-z0-9] | \[\^?\]?(?:\\.|[^\]\\])*\] | \. | [^\\()\[\]{}|^$*+?.] )
    (?P<many> [*+]\?? | \{\d+,\d*\}\?? )?
    (?: \?\?? | \{\d+\} )?
"""
_OTHER = r"(?P<other> \((?:\?:|\?<[A-Za-z]\w*>|(?!\?)) | \)(?:[*+?]\??|\{\d+,?\d*\}\??)? | \| )"
_PIECE = re.compile(f"{_ATOM} | {_OTHER}", re.VERBOSE | re.ASCII)  # digits are 0 to 9


def can_contain(pattern: str, text: str) -> bool | None:
    """Tell whether texts that match `pattern` can contain `text`; None where that is not known.

    `pattern` is a regular expression as JSON Schema has them.
    """
    pieces = _pieces(pattern)
    if pieces is None:
        return None
    atoms = [piece for piece in pieces if piece["atom"]]
    if not all(any(_matches(atom, char) for atom in atoms) for char in text):
        return False
    repeated = [atom for atom in atoms if atom["many"]]
    if len(text) == 1 or any(all(_matches(atom, char) for char in text) for atom in repeated):
        return True
    return None


def _pieces(pattern: str) -> list[re.Match[str]] | None:
    """Return what a bound pattern consists of, or None where it is none, or has other parts."""
    body = pattern[1:-1]
    pieces: list[re.Match[str]] = []
    at, depth = 0, 0
    if not (pattern.startswith("^") and pattern.endswith("$")):
        return None
    while at < len(body):
        piece = _PIECE.match(body, at)
        if piece is None or not _is_understood(piece["atom"] or ""):
            return None
        sign = (piece["other"] or " ")[0]
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "|" and depth == 0:
            return None  # `^a|b$` is bound at one end each
        pieces.append(piece)
        at = piece.end()
    return pieces if depth == 0 else None


def _is_understood(atom: str) -> bool:
    """Tell whether Python takes an atom as ECMAScript does, now and in days to come."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        try:
            re.compile(atom)
        except (re.error, FutureWarning):
            return False
    return True


def _matches(atom: re.Match[str], char: str) -> bool:
    return re.fullmatch(atom["atom"], char) is not None

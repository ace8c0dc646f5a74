"""How much one file may hold. Specs that people write stay far below; each limit stops an attack.

The limits bound the time and the memory that one file can cost, and keep later stages free to
recurse over a tree.
"""

from __future__ import annotations

MAX_SIZE = 5_000_000  # of a file in bytes, of a text in characters: some 20,000 jobs
MAX_DEPTH = 100  # of nested mappings and sequences; specs need about eight
MAX_NODES = 500_000  # of a file; about 200 bytes of memory each
MAX_ALIASED = 10_000  # values that aliases repeat, counted as if they were written out
MAX_DIGITS = 400  # of a number: more than the largest float has

TOO_DEEP = f"values nest more than {MAX_DEPTH} deep here"
TOO_MANY = f"this file holds more than {MAX_NODES:,} values"

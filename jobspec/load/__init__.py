"""Files to trees of located values: YAML 1.2 core and JSON.

`read_sources` finds and reads files, `load` turns one text into a tree of nodes. Each node knows
where it stands, and a text node also where each of its characters stands. Nothing in a file is
ever constructed or run, and no input raises: whatever is wrong with it is a diagnostic.
"""

from __future__ import annotations

from jobspec.load.comments import Comment, comments, scalar_lines
from jobspec.load.files import SUFFIXES, is_there, no_such_file, read_sources, stdin_bytes
from jobspec.load.nodes import (
    Entry,
    Loaded,
    MappingNode,
    Node,
    ScalarNode,
    ScalarValue,
    SequenceNode,
)
from jobspec.load.python_comments import declaration_comments
from jobspec.load.reader import load, load_text

__all__ = [
    "SUFFIXES",
    "Comment",
    "Entry",
    "Loaded",
    "MappingNode",
    "Node",
    "ScalarNode",
    "ScalarValue",
    "SequenceNode",
    "comments",
    "declaration_comments",
    "is_there",
    "load",
    "load_text",
    "no_such_file",
    "read_sources",
    "scalar_lines",
    "stdin_bytes",
]

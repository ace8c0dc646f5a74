"""The events that a file declares, each with the schema of its data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jobspec.imports import NotImportedError
from jobspec.keys.fault import quoted
from jobspec.load import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    load,
    no_such_file,
    read_sources,
)
from jobspec.source import Source
from jobspec.spec import models
from jobspec.spec.fields import Fields, Findings, first_of, read_mapping, wrong_type

if TYPE_CHECKING:
    from jobspec.diagnostics import Diagnostic
    from jobspec.events import Event, SchemaFault
    from jobspec.load import Entry

_MODEL = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_FILES = (".json", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class DeclaredEvent:
    """An event by its name, `typed` where its data is known.

    `file` is what its schema was read from, if that was another file.
    `is_left_out` where the schema is a model, and nothing may be imported.
    """

    name: ScalarNode
    typed: Event | None = None
    file: Path | None = None
    is_left_out: bool = False


def read_events(node: Node, findings: Findings, *, imports: bool) -> tuple[DeclaredEvent, ...]:
    """Return the events under `events:`. Models are imported only where `imports` says so."""
    mapping = read_mapping(node, "events", findings)
    entries = () if mapping is None else mapping.entries
    return tuple(_event(entry, findings, imports=imports) for entry in entries)


def _event(entry: Entry, findings: Findings, *, imports: bool) -> DeclaredEvent:
    """Read one event: nothing, or a mapping with its schema."""
    if isinstance(entry.value, ScalarNode) and entry.value.value is None:
        return DeclaredEvent(entry.key)
    mapping = read_mapping(entry.value, entry.name, findings)
    if mapping is None:
        return DeclaredEvent(entry.key)
    schema = Fields(mapping, models.Event, findings, entry.key).value_of("schema")
    if isinstance(schema, MappingNode):
        return DeclaredEvent(entry.key, _typed(entry.key, schema, findings))
    if not isinstance(schema, ScalarNode) or not isinstance(schema.value, str):
        if schema is not None:
            expected = "a JSON Schema, its file, or the `module:Class` of a model"
            wrong_type(findings, schema, "schema", expected)
        return DeclaredEvent(entry.key)
    if schema.value.endswith(_FILES):
        return _from_file(entry.key, schema, schema.value, findings)
    return _from_model(entry.key, schema, schema.value, findings, imports=imports)


def _from_file(
    name: ScalarNode, node: ScalarNode, written: str, findings: Findings
) -> DeclaredEvent:
    """Read a schema from a file, whose path is relative to that of the spec."""
    found = _beside(node.source, written)
    if not isinstance(found, Source):
        findings.append(found.moved(node.source, node.span))
        return DeclaredEvent(name)
    loaded = load(found)
    findings.extend(loaded.diagnostics)
    typed = None if loaded.node is None else _typed(name, loaded.node, findings)
    return DeclaredEvent(name, typed, Path(found.name).resolve())


def _beside(source: Source, written: str) -> Source | Diagnostic:
    """Return a file that a spec names, from where the spec is: the disk, or a git revision."""
    if source.beside is None:
        return next(iter(read_sources([Path(source.name).parent / written])))
    return source.beside(written) or no_such_file(written)


def _from_model(
    name: ScalarNode, node: ScalarNode, model: str, findings: Findings, *, imports: bool
) -> DeclaredEvent:
    """Read the schema of a model. Where nothing may be imported, nothing is known."""
    if not _MODEL.fullmatch(model):
        message = f"{quoted(model)} is not the place of a schema"
        help_ = "write a model as `myapp.events:Push`, or a file as `./push.schema.json`"
        findings.report("JS202", node, message, help_)
        return DeclaredEvent(name)
    if not imports:
        return DeclaredEvent(name, is_left_out=True)
    from jobspec.events import model_schema  # noqa: PLC0415  as below

    try:
        schema = model_schema(model)
    except NotImportedError as error:
        help_ = "correct it, or check where it can be imported"
        findings.report("JS202", node, str(error), help_)
        return DeclaredEvent(name)
    return DeclaredEvent(name, _told(name, node, schema, findings))


def _typed(name: ScalarNode, node: Node, findings: Findings) -> Event:
    return _told(name, node, node.plain(), findings)


def _told(name: ScalarNode, node: Node, schema: object, findings: Findings) -> Event:
    """Return the event that a schema describes, and report what is wrong with that in `node`."""
    from jobspec.events import Event, read_schema  # noqa: PLC0415  few files have schemas

    shape, faults = read_schema(schema)
    for fault in faults:
        place = first_of(_node_at(node, fault))
        findings.report("JS202", place, fault.message, fault.advice)
    return Event(str(name.value), shape)


def _node_at(root: Node, fault: SchemaFault) -> Node:
    """Return the node that a fault is about, or the last one on the way to it that there is."""
    node: Node = root
    for step in fault.place:
        below = _child(node, step)
        if below is None:
            return node
        if fault.is_about_key and step == fault.place[-1] and isinstance(node, MappingNode):
            key = next((one.key for one in node.entries if one.name == step), None)
        else:
            key = None
        node = key or below
    return node


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node, MappingNode):
        return node.get(str(step))
    if isinstance(node, SequenceNode) and isinstance(step, int):
        return node.items[step]
    return None

"""Typed events: what an event's data can be, and what that says about keys and conditions."""

from __future__ import annotations

from jobspec.events.conditions import check_path
from jobspec.events.keys import Event, check_key
from jobspec.events.models import model_schema
from jobspec.events.schemas import SchemaFault, read_schema
from jobspec.events.shapes import UNKNOWN, Shape

__all__ = [
    "UNKNOWN",
    "Event",
    "SchemaFault",
    "Shape",
    "check_key",
    "check_path",
    "model_schema",
    "read_schema",
]

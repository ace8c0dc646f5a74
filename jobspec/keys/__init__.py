"""Key templates: parsed, checked, and compiled to plain functions of the event."""

from __future__ import annotations

from jobspec.keys.decode import EventError
from jobspec.keys.resolve import Key
from jobspec.keys.template import KeyTemplate, KeyTemplateError

__all__ = ["EventError", "Key", "KeyTemplate", "KeyTemplateError"]

"""Python modules as specs: `myapp.jobs` stands for the registries of jobs in it.

A module that is named is imported, which runs its code: declaring jobs is running code.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from jobspec.diagnostics import RULES, CompileError, Diagnostic
from jobspec.imports import NotImportedError, imported, imported_module
from jobspec.load import SUFFIXES, is_there
from jobspec.source import Source, Span
from jobspec.spec import Declarations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jobspec.spec import Findings, Job

_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_MODULE = re.compile(rf"{_NAME}(?::{_NAME})?")


def is_module(spec: str) -> bool:
    """Tell whether a spec names a module rather than a path.

    A path that exists goes first, and what ends as a spec file does is never a module. A single
    word is one only where there is a module of that name.
    """
    if not _MODULE.fullmatch(spec) or Path(spec).suffix in SUFFIXES or is_there(spec):
        return False
    return "." in spec or ":" in spec or is_importable(spec)


def is_importable(name: str) -> bool:
    """Tell whether there is a module of a name; what contains it is imported for that."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
    except ValueError:  # a module that was not imported from anywhere, such as `__main__`
        return False
    finally:
        sys.path.remove(here)


def is_python(spec: str | Path) -> bool:
    """Tell whether a spec is the path of a Python file, which holds no spec as a text."""
    return Path(spec).suffix == ".py"


def report_python(spec: str | Path, findings: Findings) -> None:
    """Report the path of a Python file, with the name that its module has where there is one."""
    parts = Path(os.path.relpath(spec)).with_suffix("").parts
    name = ".".join(parts).removesuffix(".__init__")
    shown = name if _MODULE.fullmatch(name) else "myapp.jobs"
    help_ = f"name the module as Python imports it, such as `{shown}`"
    _report(str(spec), f"`{spec}` is Python, and not a spec file", help_, findings)


def declared_in(modules: Iterable[str], findings: Findings) -> Iterator[Job]:
    """Yield the jobs of modules, or of the registry that `module:name` names.

    A registry that several modules have counts once. A module that can't be imported, or holds no
    registry, is a finding.
    """
    seen: set[int] = set()
    for name in modules:
        for one in _registries(name, findings):
            if id(one) not in seen:
                seen.add(id(one))
                yield from one


def _registries(name: str, findings: Findings) -> list[Declarations]:
    try:
        named: list[object] = (
            [imported(name)] if ":" in name else [*vars(imported_module(name)).values()]
        )
    except NotImportedError as error:
        if isinstance(error.__cause__, CompileError):  # a declaration in it that is wrong
            findings.extend(error.__cause__.diagnostics)
        else:
            help_ = "correct it, or else install it or start in the folder that it is in"
            _report(name, str(error), help_, findings)
        return []
    found = [one for one in named if isinstance(one, Declarations)]
    if not found:
        help_ = "declare jobs with a `jobspec.Registry` in it"
        _report(name, f"`{name}` holds no registry of jobs", help_, findings)
    return found


def _report(name: str, message: str, help_: str, findings: Findings) -> None:
    rule = RULES["JS168"]
    source = Source(name, "")
    findings.append(Diagnostic(rule.code, rule.severity, message, source, Span(0, 0), help_))

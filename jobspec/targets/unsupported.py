"""Options that a target can't honour: found in compiled jobs, and reported where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from jobspec.load import MappingNode, SequenceNode
from jobspec.targets import TargetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jobspec.jobs import CompiledJob
    from jobspec.load import Node
    from jobspec.spec import Findings, ReadJob

Target = Literal["engine", "inngest"]
TARGETS: tuple[Target, ...] = ("engine", "inngest")
_NAMES: dict[Target, str] = {"engine": "the engine", "inngest": "Inngest"}
_OTHERS: dict[Target, str] = {"engine": "Inngest", "inngest": "the engine"}


@dataclass(frozen=True, slots=True)
class UnsupportedOption:
    """An option that a target can't honour.

    `path` leads to it from the job: names of fields, and numbers of items from 0. `value` is the
    part of its value that the target minds, where it takes other ones.
    """

    path: tuple[str | int, ...]
    value: str | None = None

    def __str__(self) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        option = f"`{''.join(steps).removeprefix('.')}`"
        return option if self.value is None else f"the wildcard `{self.value}` in {option}"


def unsupported_options(job: CompiledJob, target: Target) -> tuple[UnsupportedOption, ...]:
    """Return the options of a job that a target can't honour."""
    table = import_module(f"jobspec.targets.{target}")  # few checks are for a target
    found: tuple[UnsupportedOption, ...] = tuple(table.unsupported(job))
    return found


def require_supported(jobs: Iterable[CompiledJob], target: Target) -> None:
    """Raise `TargetError` naming every option that a target can't honour, and its job."""
    found = [(one, job) for job in jobs for one in unsupported_options(job, target)]
    if found:
        named = ", ".join(f"{one} of job `{job.id}`" for one, job in found)
        them = "it, or run this job" if len(found) == 1 else "them, or run these jobs"
        advice = f"remove {them} on {_OTHERS[target]}"
        raise TargetError(f"{_NAMES[target]} can't honour {named}: {advice}")


def check_target(jobs: Iterable[ReadJob], target: Target, findings: Findings) -> None:
    """Report the options of jobs that a target can't honour."""
    help_ = f"remove it, or run this job on {_OTHERS[target]}"
    for read in jobs:
        for one in unsupported_options(read.job, target):
            message = f"{_NAMES[target]} can't honour {one}"
            findings.report("JS411", _node(read, one), message, help_)


def _node(read: ReadJob, option: UnsupportedOption) -> Node:
    """Return the name of an option, or the value that the target minds, as they are written.

    What the settings of the project say for a job stands nowhere in it: then it is the job's id.
    """
    found: Node = read.fields.node
    named = read.fields.node_of("id")
    for step in _steps(read, option):
        if isinstance(found, SequenceNode) and isinstance(step, int):
            found = named = found.items[step]
        elif isinstance(found, MappingNode):
            entry = next((one for one in found.entries if one.name == step), None)
            if entry is None:
                break
            found, named = entry.value, entry.key
    return named if option.value is None or isinstance(found, SequenceNode) else found


def _steps(read: ReadJob, option: UnsupportedOption) -> Sequence[str | int]:
    """Return the path to an option, without an item's number where not all items were read."""
    node = read.fields.value_of("triggers")
    items = node.items if isinstance(node, SequenceNode) else ()
    return option.path if len(items) == len(read.job.triggers) else option.path[:1]

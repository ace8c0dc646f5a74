"""What changes between two sets of jobs, as text for people and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

from jobspec.diff import Harm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobspec.diff import Change


def render(changes: Sequence[Change]) -> str:
    """Return the changes of each job, each with what it means for what is in flight."""
    lines = [line for job, group in groupby(changes, _job) for line in _of_job(job, [*group])]
    return "".join(f"{line}\n" for line in [*lines, _summary(changes)])


def render_json(changes: Sequence[Change]) -> str:
    """Return `{"changes": [...]}`, with the worst harm of them all."""
    worst = max((change.harm for change in changes), key=[*Harm].index, default=Harm.NONE)
    plain = [asdict(change) | {"harm": change.harm.value} for change in changes]
    return json.dumps({"harm": worst.value, "changes": plain}, indent=2) + "\n"


def _job(change: Change) -> str:
    return change.job


def _of_job(job: str, changes: Sequence[Change]) -> Iterator[str]:
    whole = changes[0] if changes[0].option is None else None
    yield f"{job}{_fate(whole)}" if whole else job
    for change in changes:
        if change.option is not None:
            yield f"  {change.option}: {_values(change)}"
        yield f"    {_meaning(change)}"
    yield ""


def _fate(change: Change) -> str:
    if change.old is None:
        return " (added)"
    return " (removed)" if change.new is None else f" (renamed from {change.old})"


def _values(change: Change) -> str:
    if change.old is None:
        return f"+ {change.new}"
    return f"- {change.old}" if change.new is None else f"{change.old} -> {change.new}"


def _meaning(change: Change) -> str:
    harmful = change.harm is not Harm.NONE
    return f"{change.harm.value}: {change.effect}" if harmful else change.effect


def _summary(changes: Sequence[Change]) -> str:
    if not changes:
        return "no job changes"
    jobs = len({change.job for change in changes})
    counts = [(harm, sum(one.harm is harm for one in changes)) for harm in reversed(Harm)]
    harms = ", ".join(
        f"{number} {harm.value}" for harm, number in counts if number and harm is not Harm.NONE
    )
    changing = f"{jobs:,} job changes" if jobs == 1 else f"{jobs:,} jobs change"
    return f"{changing}: {harms or 'nothing in flight is touched'}"

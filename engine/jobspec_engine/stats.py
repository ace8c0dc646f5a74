"""Figures about an engine in the text format that Prometheus and OpenMetrics collectors read.

The format is written here, in a few lines: what a client library adds to it, counters that live in
a process, is not wanted for figures that are read from the database each time.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from jobspec_engine.tables import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LIMIT = 100_000
"""How many rows of each sort are counted."""


class Figure(NamedTuple):
    """One figure: of a metric, about a job and about a kind, where it is about such."""

    metric: str
    job: str | None
    kind: str | None
    value: float


class _Metric(NamedTuple):
    """What is told of a metric. `kind` is what its kinds are of."""

    help: str
    kind: str = ""


METRICS = {
    "runs": _Metric("Runs by state; of those that have ended, among the newest 100000.", "state"),
    "due_runs": _Metric("Runs that are due and not claimed."),
    "oldest_due_seconds": _Metric("How long the oldest run that is not claimed has been due."),
    "expired_leases": _Metric("Runs whose lease ran out and that nobody has reclaimed."),
    "dead_letters": _Metric("Dead letters that are kept, of the newest 100000.", "reason"),
    "paused": _Metric("1 for a job that is paused."),
    "workers": _Metric("Workers that were seen in the last minute."),
    "rows": _Metric("Rows of each table, by the estimate of the planner.", "table"),
}


def prometheus(figures: Iterable[Figure], schema: str) -> str:
    """Return figures as text. They come sorted by metric; each is labelled with its schema."""
    groups = groupby(figures, key=lambda figure: figure.metric)
    return "".join(line for metric, group in groups for line in _lines(metric, group, schema))


def _lines(metric: str, figures: Iterable[Figure], schema: str) -> Iterator[str]:
    told = METRICS[metric]
    yield f"# HELP jobspec_{metric} {told.help}\n"
    yield f"# TYPE jobspec_{metric} gauge\n"
    for figure in figures:
        labels = {"schema": schema, "job": figure.job, told.kind: figure.kind}
        yield f"jobspec_{metric}{{{_labels(labels)}}} {figure.value:.15g}\n"


def _labels(labels: dict[str, str | None]) -> str:
    return ",".join(
        f'{name}="{_escaped(value)}"' for name, value in labels.items() if value is not None
    )


def _escaped(value: str) -> str:
    return plain(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

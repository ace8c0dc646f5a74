"""From what a person wrote to compiled jobs: the whole pipeline, read from top to bottom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jobspec.diagnostics import CompileError, Diagnostic, Severity, in_order
from jobspec.jobs import CompiledJobs, Handler
from jobspec.load import load, read_sources
from jobspec.source import Source, Span
from jobspec.spec import Findings, Job, ReadJob, check_jobs, read_file, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Spec = str | Path | Job
"""A path of a file or directory, a text, or a declared job."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found in some specs: the jobs, the names of what was read, and what is wrong."""

    jobs: CompiledJobs
    files: tuple[str, ...]
    findings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class _Text:
    """A text to read jobs from, and the function that handles them where one was declared."""

    source: Source
    handler: Handler | None = None


def compile(specs: Spec | Iterable[Spec]) -> CompiledJobs:  # noqa: A001  the word for what it does
    """Return the compiled jobs of one or several specs.

    A spec is a `Path` or a text that names a file, a directory (all `*.yaml`, `*.yml` and `*.json`
    below it), a glob, or `-` for standard input; a text with a line break or a brace in it is the
    content of a file itself; `Job`s and a `Registry` of them are taken as they are.

    Raises `CompileError` with everything that is wrong, warnings included, if anything is an
    error. Finding no job at all is one.
    """
    examined = examine(specs)
    if any(found.severity is Severity.ERROR for found in examined.findings):
        raise CompileError(examined.findings)
    return examined.jobs


def check(specs: Spec | Iterable[Spec]) -> tuple[Diagnostic, ...]:
    """Return everything that is wrong with specs, by file and place; takes what `compile()` takes.

    Nothing that a spec can hold makes it raise.
    """
    return examine(specs).findings


def examine(specs: Spec | Iterable[Spec]) -> Examined:
    """Return the jobs of specs together with what is wrong with them."""
    findings = Findings()
    texts = tuple(_texts(_several(specs), findings))
    read = [job for text in texts for job in _read(text, findings)]
    check_jobs(read, findings)
    if not read and not any(found.severity is Severity.ERROR for found in findings):
        _report_no_job(texts, findings)
    jobs = CompiledJobs(tuple({one.job.id: one.job for one in read}.values()))
    files = tuple(text.source.name for text in texts)
    return Examined(jobs, files, in_order(findings))


def _several(specs: Spec | Iterable[Spec]) -> Iterable[Spec]:
    return (specs,) if isinstance(specs, str | Path | Job) else specs


def _texts(specs: Iterable[Spec], findings: Findings) -> Iterator[_Text]:
    """Yield the texts that specs stand for; what can't be read is a finding."""
    paths: list[str | Path] = []
    for spec in specs:
        if isinstance(spec, Job):
            handler = spec.handler if callable(spec.handler) else None
            yield _Text(Source(f"<job {spec.id}>", written(spec)), handler)
        elif isinstance(spec, str) and _is_content(spec):
            yield _Text(Source("<text>", spec))
        else:
            paths.append(spec)
    for found in read_sources(paths):
        if isinstance(found, Source):
            yield _Text(found)
        else:
            findings.append(found)


def _is_content(spec: str) -> bool:
    """Tell whether a string is the content of a spec file rather than the path of one."""
    return "\n" in spec or "{" in spec


def _read(text: _Text, findings: Findings) -> Iterator[ReadJob]:
    """Yield the jobs of one text."""
    loaded = load(text.source)
    findings.extend(loaded.diagnostics)
    if loaded.node is None:
        return
    for read in read_file(loaded.node, findings):
        if text.handler is not None:
            yield replace(read, job=replace(read.job, handler=text.handler))
        else:
            yield read


def _report_no_job(texts: tuple[_Text, ...], findings: Findings) -> None:
    """Report that there is no job, so that a check of the wrong place does not pass in vain."""
    source = texts[0].source if texts else Source("<nothing>", "")
    help_ = "name a file or a directory that holds specs, with jobs under `jobs:`"
    findings.append(
        Diagnostic("JS313", Severity.ERROR, "there is no job here", source, Span(0, 0), help_)
    )

"""From what a person wrote to compiled jobs: the whole pipeline, read from top to bottom."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from jobspec.diagnostics import CompileError, Diagnostic, Severity, in_order
from jobspec.ignores import without_ignored
from jobspec.jobs import CompiledJobs, Handler
from jobspec.load import load, read_sources
from jobspec.modules import declared_in, is_module, is_python, report_python
from jobspec.settings import FoundSettings, OfProject, Settings, find_settings
from jobspec.source import Source, Span
from jobspec.spec import (
    Declarations,
    Findings,
    Job,
    ReadFile,
    ReadJob,
    check_events,
    check_handlers,
    check_jobs,
    read_file,
    written,
)
from jobspec.targets.unsupported import check_target

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from jobspec.targets.unsupported import Target

Spec = str | Path | Source | Job | Declarations
"""A path of a file or directory, a text, a text with a name, a declared job, or a registry."""


Item = TypeVar("Item")


class Watch(Protocol):
    """Something that looks on while items are worked through."""

    def __call__(self, items: Sequence[Item], /) -> Iterable[Item]:
        """Yield the items in their order."""
        ...


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found in some specs: the jobs, the files that were read, and what is wrong."""

    jobs: CompiledJobs
    files: tuple[str, ...]
    findings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class _Text:
    """A text to read jobs from, and the function that handles them where one was declared."""

    source: Source
    handler: Handler | None = None


@dataclass(frozen=True, slots=True)
class _Read:
    """A text, what it declares, and what is wrong with it."""

    text: _Text
    file: ReadFile
    findings: Findings


def compile(  # noqa: A001  the word for what it does
    specs: Spec | Iterable[Spec] | OfProject = OfProject.PATHS,
    *,
    import_: bool = False,
    target: Target | None = None,
) -> CompiledJobs:
    """Return the compiled jobs of one or several specs; without any, of those of the project.

    A spec is a `Path` or a text that names a file, a directory (all `*.yaml`, `*.yml` and `*.json`
    below it), a glob, or `-` for standard input; a text with a line break or a brace in it is the
    content of a file itself; a text that names a Python module (`myapp.jobs`) stands for the
    registries in it, and imports it; `Job`s and a `Registry` of them are taken as they are. Those
    of the project are what `project_paths()` returns.

    The settings of the nearest pyproject.toml count, from the working directory upwards. With
    `import_`, handlers and the event schemas that are models are imported, which runs code of
    yours. Without it nothing is known of such events. With a `target`, `"engine"` or `"inngest"`,
    an option that it can't honour is an error; by default that of the settings counts, if any.

    Raises `CompileError` with everything that is wrong, warnings included, if anything is an
    error. Finding no job at all is one.
    """
    examined = examine(specs, import_=import_, target=target)
    if any(found.severity is Severity.ERROR for found in examined.findings):
        raise CompileError(examined.findings)
    return examined.jobs


def check(
    specs: Spec | Iterable[Spec] | OfProject = OfProject.PATHS,
    *,
    import_: bool = False,
    target: Target | None = None,
) -> tuple[Diagnostic, ...]:
    """Return everything that is wrong with specs, by file and place; takes what `compile()` takes.

    Nothing that a spec can hold makes it raise.
    """
    return examine(specs, import_=import_, target=target).findings


@contextmanager
def _collector_paused() -> Generator[None, None, None]:
    """Keep the garbage collector from running.

    Reading makes very many objects that live on. Going through them all, again and again as they
    become more, took a quarter of the time for 1,000 files and half of it for 10,000.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_collector_paused()
def examine(
    specs: Spec | Iterable[Spec] | OfProject,
    *,
    import_: bool = False,
    target: Target | None = None,
    found: FoundSettings | None = None,
    watch: Watch = iter,
) -> Examined:
    """Return the jobs of specs, by default the project's, with what is wrong with them.

    `found` are the settings that count, by default those of the project. `watch` is given the texts
    before they are read, and yields each when its turn has come.
    """
    found = find_settings() if found is None else found
    findings = Findings(found.findings)
    specs = found.settings.paths if specs is OfProject.PATHS else specs
    texts = tuple(_texts(_several(specs), findings))
    if specs == found.settings.paths:
        findings[:] = map(found.placed, findings)
    read = _without_schemas([_read(text, imports=import_) for text in watch(texts)])
    findings += [fault for one in read for fault in one.findings]
    jobs = [_settled(job, found.settings) for one in read for job in one.file.jobs]
    events = [event for one in read for event in one.file.events]
    check_jobs(jobs, findings)
    check_events(jobs, events, findings)
    target = target or found.settings.target
    if target:
        check_target(jobs, target, findings)
    if import_:
        check_handlers(jobs, findings)
    if not jobs and not any(fault.severity is Severity.ERROR for fault in findings):
        _report_no_job(texts, findings)
    sources = [one.text.source for one in read]
    unsought: tuple[str, ...] = () if target else ("JS411",)
    if any(event.is_left_out for event in events):
        unsought += ("JS2",)
    left = without_ignored(tuple(dict.fromkeys(findings)), sources, unsought=unsought)
    compiled = CompiledJobs(tuple({one.job.id: one.job for one in jobs}.values()))
    wanted = in_order(filter(found.settings.wants, left))
    return Examined(compiled, tuple(dict.fromkeys(source.file for source in sources)), wanted)


def _several(specs: object) -> Iterable[object]:
    """Return specs one by one, those of a registry as the jobs that it has."""
    if isinstance(specs, str | Path | Source | Job | Declarations):
        specs = (specs,)
    if isinstance(specs, bytes) or not isinstance(specs, Iterable):
        raise TypeError(_no_spec(specs))
    several = cast("Iterable[object]", specs)
    return chain.from_iterable(one if isinstance(one, Declarations) else (one,) for one in several)


def _no_spec(found: object) -> str:
    kind = type(found).__name__
    known = "a path, a text, a Source, a Job, a Registry or a list of such"
    return f"a spec is {known}, and this is of type {kind}"


def _texts(specs: Iterable[object], findings: Findings) -> Iterator[_Text]:
    """Yield the texts that specs stand for; what can't be read is a finding."""
    paths: list[str | Path] = []
    modules: list[str] = []
    for spec in specs:
        if isinstance(spec, Job):
            yield _declared(spec)
        elif isinstance(spec, Source):
            yield _Text(spec)
        elif not isinstance(spec, str | Path):
            raise TypeError(_no_spec(spec))
        elif isinstance(spec, str) and _is_content(spec):
            yield _Text(Source("<text>", spec))
        elif is_python(spec):
            report_python(spec, findings)
        elif isinstance(spec, Path):
            paths.append(spec)
        else:
            (modules if is_module(spec) else paths).append(spec)
    yield from map(_declared, declared_in(modules, findings))
    for found in read_sources(paths):
        if isinstance(found, Source):
            yield _Text(found)
        else:
            findings.append(found)


def _declared(job: Job) -> _Text:
    handler = job.handler if callable(job.handler) else None
    where = f"{job.declared_at} job" if job.declared_at else "job"
    file, _, line = (job.declared_at or "").rpartition(":")
    place = (file, int(line)) if line.isdecimal() else None
    source = Source(f'{where} "{job.id}"', written(job), is_made=True, declared_at=place)
    return _Text(source, handler)


def _is_content(spec: str) -> bool:
    """Tell whether a string is the content of a spec file rather than the path of one."""
    return "\n" in spec or "{" in spec


def _read(text: _Text, *, imports: bool) -> _Read:
    """Read one text."""
    loaded = load(text.source)
    findings = Findings(loaded.diagnostics)
    file = ReadFile()
    if loaded.node is not None:
        file = read_file(loaded.node, findings, imports=imports)
    if text.handler is not None:
        jobs = [replace(one, job=replace(one.job, handler=text.handler)) for one in file.jobs]
        file = replace(file, jobs=tuple(jobs))
    return _Read(text, file, findings)


def _without_schemas(read: Sequence[_Read]) -> Sequence[_Read]:
    """Return what was read but for the files that an event names as its schema."""
    schemas = {event.file for one in read for event in one.file.events} - {None}
    if not schemas:
        return read
    return [one for one in read if Path(one.text.source.name).resolve() not in schemas]


def _settled(read: ReadJob, settings: Settings) -> ReadJob:
    """Return a job with the settings that it leaves open."""
    if settings.on_missing is None or "on_missing" in read.fields:
        return read
    return replace(read, job=replace(read.job, on_missing=settings.on_missing))


def _report_no_job(texts: tuple[_Text, ...], findings: Findings) -> None:
    """Report that there is no job, so that a check of the wrong place does not pass in vain."""
    source = texts[0].source if texts else Source("<nothing>", "")
    help_ = "name a file or a directory that holds specs, with jobs under `jobs:`"
    if not texts:
        help_ += ", or set `paths` under [tool.jobspec] in pyproject.toml"
    findings.append(
        Diagnostic("JS313", Severity.ERROR, "there is no job here", source, Span(0, 0), help_)
    )

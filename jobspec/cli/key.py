"""`jobspec key`: what a key resolves to for an event, and why."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from jobspec.cli.shared import specs_of
from jobspec.compile import compile  # noqa: A004  the word for what it does
from jobspec.diagnostics import CompileError
from jobspec.keyed import keys_of
from jobspec.keys import EventError, KeyTemplate, KeyTemplateError
from jobspec.keys.trace import trace
from jobspec.load import stdin_bytes
from jobspec.report import traces
from jobspec.spec import suggestion

if TYPE_CHECKING:
    from jobspec.jobs import CompiledJobs

Event = dict[str, Any]


@click.command("key")
@click.argument("template", metavar="[EXPR]", required=False)
@click.option(
    "--event",
    "event_text",
    metavar="EVENT",
    required=True,
    help="An event: a JSON file, JSON itself, or - (stdin).",
)
@click.option(
    "--jobs",
    "paths",
    multiple=True,
    metavar="PATH",
    help="Specs that hold --job; repeatable. [default: those of [tool.jobspec] in pyproject.toml]",
)
@click.option("--job", "job_id", metavar="ID", help="Explain the keys of this job instead of EXPR.")
@click.option(
    "--option",
    metavar="NAME",
    help="Of that job only the key of this option, such as debounce.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with nothing cut.")
def command(
    template: str | None,
    event_text: str,
    paths: tuple[str, ...],
    job_id: str | None,
    option: str | None,
    as_json: bool,  # noqa: FBT001  click's way
) -> None:
    """Explain what a key becomes for an event.

    The key is EXPR, or those of the options of a job.

    \b
    jobspec key "event.data.a + '/' + event.data.b" --event '{"data": {"a": 1, "b": "x"}}'
    jobspec key --jobs jobs.yaml --job email.send --event event.json

    Exits with 1 if a key is not valid, or an error for this event.
    """  # noqa: D301  click knows the mark of lines by the character itself
    if (template is None) == (job_id is None):
        raise click.UsageError("name a key EXPR, or a job by --job and --jobs")
    event = _event(event_text)
    templates = (
        _of_job(compile(specs_of(paths)), job_id, option) if job_id else _alone(template or "")
    )
    keys = [_traced(name, one, event) for name, one in templates.items()]
    click.echo(traces.render_json(keys) if as_json else traces.render(keys), nl=False)
    sys.exit(1 if any(one.trace.key.outcome == "error" for one in keys) else 0)


def _alone(text: str) -> dict[str | None, KeyTemplate]:
    try:
        return {None: KeyTemplate.parse(text)}
    except KeyTemplateError as error:
        raise CompileError(error.diagnostics) from error


def _of_job(jobs: CompiledJobs, job_id: str, option: str | None) -> dict[str | None, KeyTemplate]:
    """Return the keys of a job, or of one option of it; limits of concurrency count as one."""
    if job_id not in jobs:
        raise click.UsageError(_no_such("job", job_id, tuple(jobs)))
    keys = keys_of(jobs[job_id])
    wanted: dict[str | None, KeyTemplate] = {
        name: key for name, key in keys.items() if option in (None, name.partition("[")[0])
    }
    if not wanted:
        what = f"the key of `{option}`" if option else "a key"
        raise click.UsageError(f"job `{job_id}` does not have {what}")
    return wanted


def _traced(option: str | None, template: KeyTemplate, event: Event) -> traces.TracedKey:
    try:
        return traces.TracedKey(template.text, trace(template, event), option)
    except EventError as error:
        raise click.BadParameter(str(error), param_hint="--event") from error


def _no_such(what: str, name: str, known: tuple[str, ...]) -> str:
    advice = suggestion(name, known)
    return f"there is no {what} `{name}`" + (f"; {advice}" if advice else "")


def _event(text: str) -> Event:
    """Return the event of an option: JSON itself, the path of a file of it, or `-`."""
    try:
        written = text if text.lstrip().startswith("{") else _content(text)
        found = json.loads(written, parse_int=_number)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"this is not JSON: {error}", param_hint="--event") from error
    if not isinstance(found, dict) or "data" not in found:
        raise click.BadParameter(
            'an event is an object with `data`, such as {"data": {"id": 1}}', param_hint="--event"
        )
    return cast("Event", found)


def _number(digits: str) -> int:
    """Return a whole number, its first 400 digits: so many are beyond a float64, as any more are.

    Python reads no more than 4,300, and does not say where it found them.
    """
    return int(digits[:400])


def _content(name: str) -> str:
    try:
        data = stdin_bytes() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise click.BadParameter(
            f"`{name}` can't be read: {reason}", param_hint="--event"
        ) from error

"""`jobspec worker`, and how it stops by signals; `jobspec demo`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import click

from jobspec_engine.cli.logs import LEVELS, log_to_stderr
from jobspec_engine.cli.numbers import Limit, Whole
from jobspec_engine.cli.options import (
    compiled,
    database,
    database_options,
    server,
    server_option,
)
from jobspec_engine.cli.times import Length
from jobspec_engine.nearness import listed
from jobspec_engine.retention import Retention
from jobspec_engine.worker import Worker

if TYPE_CHECKING:
    from jobspec import CompiledJobs

_MOST_NAMED = 10  # jobs, in a line

log = logging.getLogger(__name__)


@click.command("demo")
@server_option
def demo_command(dsn: str | None) -> None:
    """Run two example jobs and show what ran.

    An email is sent twice, and there is a burst of pushes. The demo lives in a schema of its own,
    which is dropped at its end.
    """
    from jobspec_engine.demo import show as demo  # noqa: PLC0415  only this command needs it

    with server(dsn) as chosen:
        demo.show(chosen)


@click.command("worker")
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@database_options
@click.option(
    "--concurrency",
    type=Whole(min=1),
    default=100,
    show_default=True,
    help="How many runs may run at once.",
)
@click.option(
    "--lease",
    type=Length(timedelta(seconds=0.5)),
    default="30s",
    show_default=True,
    help="How long after a worker died its runs are reclaimed.",
)
@click.option(
    "--limit",
    "limits",
    type=Limit(),
    multiple=True,
    help="How many runs of one job this worker holds at once, such as `email.send=3`; repeatable.",
)
@click.option(
    "--grace",
    type=Length(timedelta(0)),
    default="25s",
    show_default=True,
    help="How long running runs have to end when the worker is stopped.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Log lines for people, or one JSON object a line.",
)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="The least that is logged; `debug` tells of each run that completed.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="What its runs and logs call this worker. [default: host and process]",
)
@click.option(
    "--retention", is_flag=True, help="Prune every ten minutes, as `jobspec prune` does by default."
)
@click.option("--until-idle", is_flag=True, help="Stop when nothing is due.")
def worker_command(
    paths: tuple[str, ...],
    dsn: str | None,
    schema: str,
    concurrency: int,
    lease: timedelta,
    limits: tuple[tuple[str, int], ...],
    grace: timedelta,
    log_format: Literal["text", "json"],
    log_level: str,
    name: str | None,
    retention: bool,  # noqa: FBT001  click's way
    until_idle: bool,  # noqa: FBT001  click's way
) -> None:
    """Run the jobs of PATHS until SIGTERM or Ctrl-C.

    Without PATHS they are those that pyproject.toml names under [tool.jobspec].

    The first signal lets running runs end, and gives back those that have not after a while; a
    second one gives them back at once.
    """
    log_to_stderr(log_format, log_level)
    sys.path.insert(0, os.getcwd())  # noqa: PTH109  handlers are named as `python -m` finds them
    jobs = compiled(paths, "PATHS")
    with database(dsn, schema, migrates=True) as chosen:
        worker = Worker(
            jobs,
            chosen,
            schema=schema,
            concurrency=concurrency,
            limits=dict(limits),
            lease=lease,
            retention=Retention() if retention else None,
            name=name,
        )
        asyncio.run(_work(worker, jobs, grace, until_idle=until_idle))


async def _work(worker: Worker, jobs: CompiledJobs, grace: timedelta, *, until_idle: bool) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, worker, grace)
    log.info("worker %s is at work on %s", worker.name, _counted(jobs))
    await worker.run(until_idle=until_idle)
    log.info("worker %s is done", worker.name)


def _counted(jobs: CompiledJobs) -> str:
    """Return how many jobs there are and which, of many the first ten."""
    return f"{len(jobs):,} job{'' if len(jobs) == 1 else 's'}: {listed(jobs, _MOST_NAMED)}"


def _stop(worker: Worker, grace: timedelta) -> None:
    if worker.stopping:
        _give_back(worker)
        return
    seconds = grace.total_seconds()
    log.info("letting the running runs end for %g s; a second signal gives them back", seconds)
    worker.stop()
    asyncio.get_running_loop().call_later(seconds, _give_back, worker)


def _give_back(worker: Worker) -> None:
    log.info("giving the running runs back")
    worker.stop(now=True)


commands = (demo_command, worker_command)

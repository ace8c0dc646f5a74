"""The options that say which database: `--dsn` and `--schema`, or the bundled Postgres."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TypeVar

import click
import psycopg
from psycopg.conninfo import make_conninfo

import jobspec
from jobspec_engine.cli.numbers import Whole
from jobspec_engine.database import checked_dsn
from jobspec_engine.embedded import EmbeddedPostgres
from jobspec_engine.errors import DsnError, EditedMigrationError, EngineError, MigrationError
from jobspec_engine.migrate import check_schema_name, migrate, pending
from jobspec_engine.tables import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

P = ParamSpec("P")
R = TypeVar("R")


def _check_dsn(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else checked_dsn(value)
    except DsnError as error:
        raise click.BadParameter(str(error)) from None


def _check_schema(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        check_schema_name(value)
    except MigrationError as error:
        raise click.BadParameter(str(error)) from error
    return value


_dsn = click.option(
    "--dsn",
    callback=_check_dsn,
    envvar="JOBSPEC_DSN",
    metavar="URL",
    help="The database, postgresql://… [env: JOBSPEC_DSN; default: a bundled Postgres]",
)
_schema = click.option(
    "--schema",
    callback=_check_schema,
    metavar="NAME",
    envvar="JOBSPEC_SCHEMA",
    default="jobspec",
    show_default=True,
    help="The schema of the engine's tables [env: JOBSPEC_SCHEMA]",
)


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def jobs_option(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the option of the specs that a command wants for something."""
    return click.option(
        "--jobs",
        "paths",
        multiple=True,
        metavar="PATH",
        help=f"{what}; repeatable. [default: those of [tool.jobspec] in pyproject.toml]",
    )


def compiled(paths: tuple[str, ...], named_by: str = "--jobs") -> jobspec.CompiledJobs:
    """Compile the specs that a command was given, or else those that the project's settings name.

    Raises `click.UsageError` where neither names any, `CompileError` for what can't be compiled.
    """
    specs = paths or jobspec.project_paths()
    if not specs:
        raise click.UsageError(
            f"there are no jobs: name their specs by {named_by}, or set `paths` under"
            " [tool.jobspec] in pyproject.toml"
        )
    return jobspec.compile(specs)


def limit_option(default: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the option of how many rows a command lists."""
    return click.option(
        "--limit",
        type=Whole(1, 10_000),
        default=default,
        show_default=True,
        help="List at most so many.",
    )


def server_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--dsn` to a command, and turn what the engine raises into messages."""
    return _dsn(_guarded(command))


def database_options(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--dsn` and `--schema` to a command, and turn what the engine raises into messages."""
    return _dsn(_schema(_guarded(command)))


def _guarded(command: Callable[P, R]) -> Callable[P, R]:
    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (EngineError, jobspec.EventError, psycopg.Error) as error:
            _fail(error)
        except ExceptionGroup as group:  # a worker's tasks end together
            cause = group.exceptions[0]
            if not isinstance(cause, EngineError | psycopg.Error):
                raise
            _fail(cause)

    return guarded


def _fail(error: BaseException) -> NoReturn:
    text = str(error).strip() or type(error).__name__
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        text = f"{error.diag.message_primary}\n{_WHO_MAY}"
    if isinstance(error, psycopg.OperationalError):
        text += "\nIs it the right database? --dsn or JOBSPEC_DSN names it."
    raise click.ClickException(plain(text)) from error


_WHO_MAY = (
    "Is it the right user? The guide to deployment says, under `Who may do what`, which role may do"
    " this; an administrator gives it by `grant`, such as `grant jobspec_worker to app`."
)


@contextmanager
def database(dsn: str | None, schema: str, *, migrates: bool = False) -> Generator[str]:
    """Give the DSN to work on: the one asked for, or that of the bundled Postgres.

    It must be migrated. On the bundled Postgres a command that `migrates` sees to that itself;
    another one would make a schema of a mistyped name.
    """
    with server(dsn) as chosen:
        if dsn is None and migrates:
            migrate(chosen, schema)
        else:
            _require_migrated(chosen, schema)
        yield make_conninfo(chosen, client_encoding="utf8")  # it tells of any character


def _require_migrated(dsn: str, schema: str) -> None:
    missing = pending(dsn, schema)
    if missing:
        names = ", ".join(str(one) for one in missing)
        raise MigrationError(
            f"schema `{schema}` lacks the migrations {names}: run `jobspec migrate` with the same"
            " --dsn and --schema"
        )


@contextmanager
def server(dsn: str | None) -> Generator[str]:
    """Give the DSN of a server: the one asked for, or that of the bundled Postgres."""
    if dsn is not None:
        yield dsn
        return
    with bundled() as own:
        yield own


@contextmanager
def bundled() -> Generator[str]:
    """Start the bundled Postgres, say where its data is, and stop it at the end."""
    with EmbeddedPostgres() as running:
        where = os.fspath(running.data_dir)
        click.echo(f"bundled Postgres, data in {where}", err=True)
        try:
            yield running.dsn
        except EditedMigrationError as error:
            raise MigrationError(f"{error}. Or remove {where}, with all that is in it") from error

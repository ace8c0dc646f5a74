"""Throw-away databases, their clock, and ways to make threads and processes meet."""

from __future__ import annotations

import secrets
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

MEETING_TIMEOUT = 60  # seconds until a race that can not start fails


# All that a test can have changed in a database and emptying its tables does not change back.
SHAPE = """
    select md5(string_agg(line, ';' order by line)) from (
        select nspname::text from pg_namespace
        union all
        select concat_ws(' ', attrelid::regclass, relkind, reloptions, attnum, attname,
            format_type(atttypid, atttypmod), attnotnull, attidentity, pg_get_expr(adbin, adrelid))
        from pg_attribute
        join pg_class on pg_class.oid = attrelid
        left join pg_attrdef on adrelid = attrelid and adnum = attnum
        where attrelid >= 16384 and relkind <> 't'
        union all
        select concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid))
        from pg_constraint where oid >= 16384
        union all
        select pg_get_indexdef(indexrelid) from pg_index where indrelid >= 16384
        union all
        select pg_get_functiondef(oid) from pg_proc where oid >= 16384 and prokind in ('f', 'p')
        union all
        select pg_get_triggerdef(oid) from pg_trigger where oid >= 16384 and not tgisinternal
        union all
        select typname from pg_type where oid >= 16384 and typtype <> 'b'
        union all
        select setconfig::text from pg_db_role_setting
    ) as lines (line)
"""


class Databases:
    """Makes databases on a server and drops those still there on leaving."""

    def __init__(self, server_dsn):
        self._server_dsn = server_dsn
        self._names = []
        self._shapes = {}
        self._idle = []

    def __enter__(self):
        self._connection = psycopg.connect(self._server_dsn, autocommit=True)
        return self

    def __exit__(self, *exc_info):
        for name in list(self._names):
            self.drop(name)
        self._connection.close()

    def create(self, template="template0"):
        """Return the name and the address of a new database."""
        name = f"jobspec_test_{secrets.token_hex(6)}"
        self._run("create database {} template {}", name, template)
        self._names.append(name)
        return name, make_conninfo(**conninfo_to_dict(self._server_dsn) | {"dbname": name})

    def drop(self, name):
        """Drop a database, whoever is still connected to it."""
        self._run("drop database {} with (force)", name)
        self._names.remove(name)

    @contextmanager
    def borrowed(self, template):
        """Give the address of a copy of a database, which goes to the next borrower when emptied.

        A copy takes a quarter of a second to make. One that is changed in more than its rows is
        dropped.
        """
        name, dsn = self._idle.pop() if self._idle else self.create(template)
        if template not in self._shapes:
            with psycopg.connect(dsn) as connection:
                self._shapes[template] = connection.execute(SHAPE).fetchone()
        yield dsn
        if self._emptied(dsn, self._shapes[template]):
            self._idle.append((name, dsn))
        else:
            self.drop(name)

    def _emptied(self, dsn, shape):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
            if connection.execute(SHAPE).fetchone() != shape:
                return False
            (tables,) = connection.execute(
                "select string_agg(format('%I.%I', schemaname, tablename), ', ') from pg_tables"
                " where schemaname = 'jobspec' and tablename <> 'migration'"
            ).fetchone()
            connection.execute(f"truncate {tables} restart identity")
            return True

    def _run(self, query, *names):
        self._connection.execute(sql.SQL(query).format(*map(sql.Identifier, names)))


class Clock:
    """The time of all sessions of one throw-away database, moved by hand.

    It replaces the schema's function `now()` by one that reads a table. Every move is committed at
    once; a statement that has begun keeps its time. `set jobspec.now` still wins in its session.
    """

    START = datetime(2026, 1, 1, tzinfo=UTC)

    def __init__(self, dsn, schema="jobspec"):
        self._dsn = dsn
        self._schema = schema

    def __enter__(self):
        self._connection = psycopg.connect(self._dsn, autocommit=True)
        (self._real,) = self._connection.execute(
            "select pg_get_functiondef(%s::regprocedure)", [f'"{self._schema}".now()']
        ).fetchone()
        self._connection.execute("create schema jobspec_testing")
        self._connection.execute("create table jobspec_testing.clock (at timestamptz not null)")
        self._connection.execute("insert into jobspec_testing.clock values (%s)", [self.START])
        self._connection.execute(
            sql.SQL(
                "create or replace function {}.now() returns timestamptz"
                " language sql stable parallel safe return coalesce("
                " nullif(current_setting('jobspec.now', true), '')::timestamptz,"
                " (select at from jobspec_testing.clock))"
            ).format(sql.Identifier(self._schema))
        )
        return self

    def __exit__(self, *exc_info):
        self._connection.execute(self._real)
        self._connection.execute("drop schema jobspec_testing cascade")
        self._connection.close()

    def now(self):
        """Return the time the database has now."""
        return self._connection.execute("select at from jobspec_testing.clock").fetchone()[0]

    def set(self, at):
        """Make it this time, an aware datetime."""
        self._connection.execute("update jobspec_testing.clock set at = %s", [at])

    def advance(self, by):
        """Move the time on by a timedelta or a number of seconds, and return the new time."""
        delta = by if isinstance(by, timedelta) else timedelta(seconds=by)
        return self._connection.execute(
            "update jobspec_testing.clock set at = at + %s returning at", [delta]
        ).fetchone()[0]


def together(*calls):
    """Run every call in a thread of its own, all at the same moment.

    Returns what each gave, in order: its result, or the exception that it raised.
    """
    barrier = threading.Barrier(len(calls), timeout=MEETING_TIMEOUT)

    def meet(call):
        barrier.wait()
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - it is the outcome that the test asks for
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(meet, calls))


def wait_until_blocked(connection, sessions=1):
    """Return once this many other sessions of the connection's database wait for a lock."""
    query = """
        select count(*) from pg_stat_activity
        where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0
    """
    deadline = time.monotonic() + MEETING_TIMEOUT
    while connection.execute(query).fetchone()[0] < sessions:
        assert time.monotonic() < deadline, "nobody came to wait for the lock"


class PythonProcess:
    """Another Python process that runs a piece of code, line by line in step with the test.

    The code prints a line where the test is to catch up (`expect`), and reads one where it is to
    wait for the test (`tell`).
    """

    def __init__(self, code, *arguments, **options):
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=MEETING_TIMEOUT)

    def expect(self, line):
        """Wait for the next line of output and hold it to be this one."""
        found = self.process.stdout.readline().rstrip("\n")
        assert found == line, f"{found!r}; {self.process.stderr.read() if not found else ''}"

    def tell(self, line=""):
        """Send the process a line that it waits for."""
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def end(self):
        """Wait for the end and return the rest of the output; a failure is the test's failure."""
        output, errors = self.process.communicate(timeout=MEETING_TIMEOUT)
        assert self.process.returncode == 0, errors
        return output


def processes_together(code, *arguments_of_each):
    """Run the code in a process for each tuple of arguments, all at the same moment.

    The code runs after the meeting. Returns the output of each, in order.
    """
    meeting = "print('here'); input()\n"
    processes = [PythonProcess(meeting + code, *arguments) for arguments in arguments_of_each]
    for process in processes:
        process.expect("here")
    for process in processes:
        process.tell()
    return [process.end() for process in processes]

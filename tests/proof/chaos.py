"""Worker processes under load, and blows: to them, to Postgres, to the pooler, at random.

A blow falls whenever work has gone on for a while, told by what handlers write to a file, so that
nothing here waits for a time to pass.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

import jobspec
from enginekit import until
from jobspec_engine import EmbeddedPostgres
from jobspec_engine.datadir import DataDir
from jobspec_engine.dispatch import digest
from jobspec_engine.migrate import migrate
from jobspec_engine.postmaster import Postmaster
from pooling import free_port, pgbouncer
from proof.chaos_handlers import WITNESS
from proof.load import Senders

SPEC = Path(__file__).with_name("chaos_jobs.yaml")
COMMAND = "from jobspec.cli import main; main(prog_name='jobspec')"
LEASE = 5.0  # seconds
POLL = 1.0  # seconds; what `jobspec worker` has
PATIENCE = 60  # seconds until a process that does not end is a failure
BETWEEN = (40, 200)  # lines of the witness between two blows
CRON = "* * * * *"

# How often each blow falls, in proportion.
BLOWS = {
    "kill a worker": 6,
    "stop a worker": 4,
    "stop a worker at once": 3,
    "freeze a worker": 2,
    "kill all workers": 1,
    "restart Postgres fast": 2,
    "restart Postgres immediately": 2,
    "restart the pooler": 1,
    "end sessions": 2,
    "put schedules back": 2,
}


@dataclass
class Blow:
    """What was done, from when to when, and to which processes; none: to all of them."""

    kind: str
    began: float
    ended: float = 0.0
    processes: frozenset[int] = frozenset()


class Witness:
    """The file that handlers write to, read as it grows."""

    def __init__(self, path):
        self.path = path
        path.touch()
        path.chmod(0o666)
        self._file = path.open("rb")
        self._rest = b""
        self.lines = []
        self.ended = Counter()

    def close(self):
        self._file.close()

    def read(self):
        """Take in what was written since, and return how many lines there are."""
        *whole, self._rest = (self._rest + self._file.read()).split(b"\n")
        new = [json.loads(line) for line in whole]
        self.lines += new
        self.ended.update(line["job"] for line in new if line["what"] == "ended")
        return len(self.lines)


class Postgres:
    """A server of the chaos's own."""

    def __init__(self, folder):
        self._folder = folder
        bin_dir = os.environ.get("JOBSPEC_TEST_PG_BIN")
        self._settings = folder, {"fsync": "off", "max_connections": "100"}, bin_dir
        self._use = EmbeddedPostgres(*self._settings)

    def __enter__(self):
        self.dsn = self._use.__enter__().dsn
        return self

    def __exit__(self, *exc_info):
        self._use.__exit__(*exc_info)

    def restart(self, how):
        """Stop the server by a signal and start it again."""
        server = psutil.Process(Postmaster.read(DataDir(Path(self._folder)).cluster).pid)
        server.send_signal(how)
        server.wait(PATIENCE)
        self.__exit__(None, None, None)
        self._use = EmbeddedPostgres(*self._settings)
        self.__enter__()

    def execute(self, query, *params):
        """Execute a statement and return its rows."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(query, params)
            return cursor.fetchall() if cursor.description else []


class Pooler:
    """PgBouncer in transaction mode, always at the same address."""

    def __init__(self, dsn):
        self._server = dsn
        self._port = free_port()
        self.__enter__()

    def __enter__(self):
        self._running = pgbouncer(self._server, "transaction", self._port)
        self.dsn = self._running.__enter__()
        return self

    def __exit__(self, *exc_info):
        self._running.__exit__(None, None, None)

    def restart(self):
        self.__exit__()
        self.__enter__()


class Fleet:
    """Workers, each through an address of its own; one that ends is replaced at once."""

    def __init__(self, addresses, folder, witness):
        self._folder = folder
        self._environment = {**os.environ, WITNESS: str(witness)}
        self.frozen = []
        self.killed = []
        self.started = []
        self.at_work = [self._start(address) for address in addresses]

    def _start(self, address):
        log = Path(self._folder, f"worker-{len(self.started)}.log")
        with log.open("ab") as stderr:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-c", COMMAND, "worker", SPEC, "--dsn", address),
                    *("--lease", str(LEASE), "--concurrency", "10"),
                ],
                cwd=SPEC.parents[1],
                env=self._environment,
                stderr=stderr,
            )
        process.address, process.log = address, log
        self.started.append(process)
        return process

    def _replace(self, process):
        self.at_work.remove(process)
        self.at_work.append(self._start(process.address))

    def replace_ended(self):
        """Start others for those that ended, as who comes to find no database does."""
        for process in [one for one in self.at_work if one.poll() is not None]:
            self._replace(process)

    def strike(self, process, number):
        """Send a worker a signal, and start another in its place."""
        process.send_signal(number)
        if number == signal.SIGKILL:
            self.killed.append(process)
        self._replace(process)

    def stop_at_once(self, process):
        """Stop a worker by two signals, of which the second gives its runs back."""
        self.strike(process, signal.SIGTERM)
        until(lambda: b"a second signal" in process.log.read_bytes() or process.poll() is not None)
        process.send_signal(signal.SIGTERM)

    def freeze(self, process):
        """Stop a worker's time; another takes its place."""
        process.send_signal(signal.SIGSTOP)
        self.frozen.append(process)
        self._replace(process)

    def thaw(self):
        """Let frozen workers go on, and stop them."""
        for process in self.frozen:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
        self.frozen = []

    def stop(self):
        """Stop all workers, and return what they said."""
        for process in self.at_work:
            process.send_signal(signal.SIGTERM)
        for process in self.started:
            process.wait(PATIENCE)
        return [one.log.read_text() for one in self.started]

    def end(self):
        """Leave no process behind."""
        for process in self.started:
            process.kill()
            process.wait(PATIENCE)


class Chaos:
    """The load, the blows, and what is to be reckoned with afterwards."""

    def __init__(self, seed):
        self.seed = seed
        self.blows = []
        self._rng = random.Random(seed)
        self._stack = ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="jobspec-chaos-"))
            Path(folder).chmod(0o755)  # root's server runs as another user
            self.folder = Path(folder)
            self.postgres = stack.enter_context(Postgres(folder))
            migrate(self.postgres.dsn)
            self._pooler = Pooler(self.postgres.dsn)
            stack.push(self._pooler)
            self.witness = Witness(self.folder / "witness")
            stack.callback(self.witness.close)
            self.ticks_from = None
            self._put_schedule_back("50 minutes")
            direct, pooled = self.postgres.dsn, self._pooler.dsn
            self.fleet = Fleet([direct, direct, pooled, pooled], folder, self.witness.path)
            stack.callback(self.fleet.end)
            self.senders = Senders(
                jobspec.compile(SPEC), [direct, direct, pooled], self._behind, self._rng
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc_info):
        self._stack.close()

    def run(self, how_many):
        """Let blows fall under load, one of each kind if there are as many.

        The first is a death that nothing follows until all has recovered from it. Returns when all
        that was sent has ended.
        """
        kinds = list(BLOWS) + self._rng.choices(list(BLOWS), BLOWS.values(), k=how_many)
        kinds = kinds[:how_many]
        self._rng.shuffle(kinds)
        with self.senders:
            self._until_work_went_on()
            self._strike("kill a worker", until(self._somebody_at_work, "a worker with runs"))
            self._until_reclaimed(self.fleet.killed)
            for kind in kinds:
                self._until_work_went_on()
                self._strike(kind, self._rng.choice(self.fleet.at_work))
        self._thaw()
        until(self._idle, "the end of all runs")
        self.logs = self.fleet.stop()
        self.witness.read()

    def blow(self, kind, strike, *processes):
        """Do something, and keep what it was and when."""
        blow = Blow(kind, time.time(), processes=frozenset(one.pid for one in processes))
        self.blows.append(blow)
        strike()
        blow.ended = time.time()

    def _strike(self, kind, worker):
        strike = self.fleet.strike
        match kind:
            case "kill a worker":
                self.blow(kind, lambda: strike(worker, signal.SIGKILL), worker)
            case "stop a worker":
                self.blow(kind, lambda: strike(worker, signal.SIGTERM), worker)
            case "stop a worker at once":
                self.blow(kind, lambda: self.fleet.stop_at_once(worker), worker)
            case "freeze a worker":
                self._thaw()
                self.blow(kind, lambda: self.fleet.freeze(worker), worker)
            case "kill all workers":
                for one in list(self.fleet.at_work):
                    self.blow(kind, lambda one=one: strike(one, signal.SIGKILL), one)
            case "restart Postgres fast":
                self.blow(kind, lambda: self.postgres.restart(signal.SIGINT))
            case "restart Postgres immediately":
                self.blow(kind, lambda: self.postgres.restart(signal.SIGQUIT))
            case "restart the pooler":
                self.blow(kind, self._pooler.restart)
            case "end sessions":
                self.blow(kind, self._end_sessions)
            case _:
                self.blow(kind, lambda: self._put_schedule_back("10 minutes"))

    def _thaw(self):
        """Wake the workers that are frozen, when others have their runs."""
        self._until_reclaimed(self.fleet.frozen)
        if self.fleet.frozen:
            self.blow("thaw", self.fleet.thaw, *self.fleet.frozen)

    def _somebody_at_work(self):
        return next(filter(self._holds, self.fleet.at_work), None)

    def _until_reclaimed(self, processes):
        until(lambda: not any(map(self._holds, processes)), "the reclaim of their runs")

    def _holds(self, process):
        ((held,),) = self.postgres.execute(
            "select count(*) from jobspec.job_queue where state = 'running' and claimed_by like %s",
            f"%:{process.pid}",
        )
        return held > 0

    def _end_sessions(self):
        self.postgres.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name like 'jobspec %%' order by random() limit 4"
        )

    def _put_schedule_back(self, by):
        """Have a schedule stand earlier, as if nobody had been there since."""
        ((stands,),) = self.postgres.execute(
            "insert into jobspec.job_cron as kept (job_id, cron_digest, cron, ticked_until)"
            " values ('tick', %s, %s, jobspec.now() - %s::interval)"
            " on conflict (job_id, cron_digest) do update"
            " set ticked_until = kept.ticked_until - %s::interval returning ticked_until",
            digest(CRON), CRON, by, by,
        )  # fmt: skip
        self.ticks_from = min(stands, self.ticks_from or stands)

    def _behind(self, ledger):
        return len(ledger.sent["plain"]) - self.witness.ended["plain"]

    def _until_work_went_on(self):
        wanted = self.witness.read() + self._rng.randint(*BETWEEN)
        until(lambda: self._work_went_on(wanted), f"work, after {self.blows[-1:]}")

    def _work_went_on(self, wanted):
        self.fleet.replace_ended()
        return self.witness.read() >= wanted

    def _idle(self):
        self.fleet.replace_ended()
        ((waiting,),) = self.postgres.execute(
            "select count(*) from jobspec.job_queue where finished_at is null"
        )
        return not waiting

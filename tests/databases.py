"""Ways to make threads and processes meet."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

MEETING_TIMEOUT = 60  # seconds until a race that can not start fails


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


def end_client_lines(connection):
    """End the sessions of all clients of the connection's database; return how many there were."""
    (ended,) = connection.execute(
        "select count(*) filter (where pg_terminate_backend(pid, 60000)) from pg_stat_activity"
        " where application_name = 'jobspec client' and datname = current_database()"
    ).fetchone()
    return ended


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

"""Cost of a check: `python tests/bench/bench_check.py`.

Start-up is a ratio of processes that take turns, so that a busy machine slows all of them down.
Throughput counts the processor's time for 1,000 files of five jobs each, and how it grows from
there to 10,000 files.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jobspec import check

ROUNDS = 15
JOB = """\
  - id: email.send-{n}
    triggers: [{{event: email.send-{n}}}]
    handler: myapp.jobs:send_email
    idempotency: event.data.idempotencyKey
    retries: 4
  - id: system.code-graph-refresh-{n}
    triggers: [{{event: github/push-{n}}}]
    handler: myapp.jobs:refresh
    debounce:
      key: event.data.installationId + '/' + event.data.repoOwner + '/' + event.data.repoName
      period: 2m
      timeout: 15m
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        for line in (*start_up(Path(folder)), *throughput(Path(folder))):
            print(line)  # noqa: T201  a benchmark prints


def start_up(folder):
    one = folder / "one.yaml"
    one.write_text("jobs:\n" + JOB.format(n=0))
    command = shutil.which("jobspec", path=str(Path(sys.executable).parent))
    contestants = {
        "import lark, pydantic": [sys.executable, "-c", "import lark, pydantic"],
        "jobspec check one.yaml": [command, "check", str(one)],
    }
    taken = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, arguments in contestants.items():
            taken[name].append(seconds(lambda: run(arguments)))  # noqa: B023  called at once
    base, own = (statistics.median(times) for times in taken.values())
    yield f"start-up: {own * 1000:.0f} ms, {own / base:.2f} times importing lark and pydantic"


def throughput(folder):
    folders = {count: written(folder / str(count), count) for count in (1_000, 10_000)}
    taken = {count: processor_seconds(folders[count]) for count in folders}
    yield f"1,000 files, 5,000 jobs: {5_000 / taken[1_000]:,.0f} jobs/s"
    yield f"10,000 files take {taken[10_000] / taken[1_000]:.1f} times as long"


def written(folder, count):
    """Write files of five jobs each, and return their folder."""
    folder.mkdir()
    for number in range(count):
        jobs = "".join(JOB.format(n=f"{number}-{part}") for part in range(3))
        five = jobs[: jobs.rindex("  - id: ")]
        (folder / f"{number}.yaml").write_text("jobs:\n" + five)
    return folder


def run(arguments):
    subprocess.run(arguments, check=True, capture_output=True)


def processor_seconds(folder):
    start = time.process_time()
    check(folder)
    return time.process_time() - start


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

"""Cost of a check: `python tests/bench/bench_check.py`.

Start-up is a ratio of processes that take turns. Throughput is that of 1,000 files of five jobs
each, and how it grows from there to 10,000 files. Both count the processor's time, so that what
else runs on the machine matters little; `test_check_speed.py` holds them to their bounds.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ratio = start_up(folder)
        thousand, ten_thousand = (throughput(folder, count) for count in (1_000, 10_000))
        loaded = loading(folder / "1000")
    lines = (
        f"start-up: {ratio:.2f} times importing lark and pydantic",
        f"1,000 files, 5,000 jobs: {5_000 / thousand:,.0f} jobs/s",
        f"that is {thousand / loaded:.1f} times what libyaml takes to load them",
        f"10,000 files take {ten_thousand / thousand:.1f} times as long",
    )
    print("\n".join(lines))  # noqa: T201  a benchmark prints


def start_up(folder):
    """Return how many times as long a check of one small file takes as importing its libraries.

    All modules are there as bytecode, as pip leaves those that it installs, whatever the
    environment says: to compile ours took a third of the time of a check.
    """
    one = folder / "one.yaml"
    one.write_text("jobs:\n" + JOB.format(n=0))
    command = shutil.which("jobspec", path=str(Path(sys.executable).parent))
    contestants = (
        [sys.executable, "-c", "import lark, pydantic"],
        [command, "check", str(one)],
    )
    compiled = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    compiled.pop("PYTHONDONTWRITEBYTECODE", None)
    rounds = [
        [process_seconds(arguments, compiled) for arguments in contestants]
        for _ in range(ROUNDS + 1)  # the first one writes the bytecode
    ]
    return statistics.median(own / base for base, own in rounds[1:])


def throughput(folder, count):
    """Return the seconds that a check of so many files takes."""
    specs = written(folder / str(count), count)
    start = time.process_time()
    check(specs)
    return time.process_time() - start


def loading(folder):
    """Return the seconds that libyaml and PyYAML take to load the files of a folder."""
    start = time.process_time()
    for file in folder.iterdir():
        yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
    return time.process_time() - start


def written(folder, count):
    """Write files of five jobs each, and return their folder."""
    folder.mkdir()
    for number in range(count):
        jobs = "".join(JOB.format(n=f"{number}-{part}") for part in range(3))
        five = jobs[: jobs.rindex("  - id: ")]
        (folder / f"{number}.yaml").write_text("jobs:\n" + five)
    return folder


def process_seconds(arguments, environment):
    """Return the processor's seconds that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()

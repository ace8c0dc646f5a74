"""The handlers of the chaos. Each says what it does to a witness that no blow hits: a file.

A line is one write at the file's end: it is there whole, also of a process that dies right after.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from contextlib import contextmanager
from datetime import timedelta

WITNESS = "JOBSPEC_CHAOS_WITNESS"  # the variable that names the file
LONGEST = 0.2  # seconds that a handler takes


class PlannedError(Exception):
    """An attempt that is to fail."""


def testify(context, what, **more):
    """Say what a pass does."""
    said = {
        "run": context.run_id,
        "job": context.job_id,
        "attempt": context.attempt,
        "number": context.pass_number,
        "process": os.getpid(),
        "what": what,
        "at": time.time(),
        **more,
    }
    witness = os.open(os.environ[WITNESS], os.O_APPEND | os.O_WRONLY)
    os.write(witness, json.dumps(said).encode() + b"\n")
    os.close(witness)


@contextmanager
def witnessed(context):
    """Say when a pass begins, and how it ends if it does."""
    testify(context, "began")
    try:
        yield
    except BaseException as error:
        testify(context, "left", by=type(error).__name__)
        raise
    testify(context, "ended")


def a_while():
    return random.uniform(0, LONGEST)


async def plain(context):
    with witnessed(context):
        await asyncio.sleep(a_while())


def threaded(context):
    with witnessed(context):
        time.sleep(a_while())


async def failing(context):
    with witnessed(context):
        await asyncio.sleep(a_while())
        if context.attempt <= context.event.data["failures"]:
            raise PlannedError


async def child(context):
    with witnessed(context):
        await asyncio.sleep(a_while())
        return 2 * context.event.data["n"]


async def stepped(context):
    step, n = context.step, context.event.data["n"]
    with witnessed(context):
        first = await step.run("first", drawn, context, "first")
        await step.sleep("nap", timedelta(seconds=a_while()))
        doubled, second = await asyncio.gather(
            step.invoke("child", {"n": n}, type=int), step.run("second", drawn, context, "second")
        )
        await step.send_event("chaos/told", {"run": context.run_id})
        return [first, doubled, second]


async def drawn(context, step) -> int:
    """Return what no second call would: a step's result is that of the call which was kept."""
    number = random.getrandbits(50)
    testify(context, "step", step=step, number_drawn=number)
    await asyncio.sleep(a_while() / 4)
    return number

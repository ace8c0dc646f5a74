"""The supervisor: takes a slot, boots a container, watches it, tears it down, gives the slot back.

It holds to the rule that stands at the head of `jobspec_engine/steps.py`. Each thing that must not
happen twice is a step, and asks with a key that is the same in each pass. The watching is a plain
loop; only what comes out of it is kept, since the steps behind it hang on it.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import jobspec
from examples.supervisor.calls import Calls, UnreadableError
from jobspec import Backoff

if TYPE_CHECKING:
    from examples.supervisor.calls import Container
    from jobspec_engine import Context

Verdict = Literal["done", "gone", "boot-deadline", "too-old", "refused"]


@dataclass(frozen=True)
class Limits:
    """Ceilings, in seconds since the container was booted, and the pause between two reads."""

    boot: float = 300
    age: float = 3600
    pause: float = 5


async def supervise(context: Context) -> Verdict:
    """Supervise one container, from its slot to its end."""
    step, data = context.step, context.event.data
    calls = Calls(data["provider"], context.event.id)

    # A restart may ask again for a slot that this run holds: `already_held` is as good.
    slot = await step.run("take slot", calls.take_slot)
    while slot == "full":
        await step.sleep("wait for a slot", timedelta(minutes=1))
        slot = await step.run("take slot", calls.take_slot)
    if slot == "over":
        return "refused"

    container = await step.run(
        "boot", calls.boot, retries=3, backoff=Backoff("fixed", delay=timedelta(seconds=1))
    )
    limits = Limits(**data.get("limits", {}))
    verdict = await step.run("watch", watch, calls, container, limits)
    await step.run("tear down", calls.tear_down, retries=3)
    await step.run("release slot", calls.release_slot, retries=3)
    return verdict


async def watch(calls: Calls, container: Container, limits: Limits) -> Verdict:
    """Read a container until it ends or a ceiling is reached.

    There is no counter and no clock of this pass: both would begin anew after a restart. All time
    is measured from the boot. A read that failed is no news; it reaches no verdict, and what ends a
    watch that can read nothing at all is the age of the container.
    """
    while time.time() - container.booted_at < limits.age:
        try:
            reading = await calls.read()
        except UnreadableError:
            await asyncio.sleep(limits.pause)
            continue
        if reading.state in ("done", "gone"):
            return reading.state
        if reading.state == "booting" and reading.now - container.booted_at >= limits.boot:
            return "boot-deadline"
        await asyncio.sleep(limits.pause)
    return "too-old"


def jobs() -> jobspec.CompiledJobs:
    """Return the supervisor as a compiled job."""
    registry = jobspec.Registry()
    registry.job(id="container.supervise", triggers=["container.requested"])(supervise)
    return jobspec.compile(registry)

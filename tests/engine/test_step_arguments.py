"""What steps may be called with: what can't be kept is refused where the handler can catch it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_serializer

from enginekit import job, run_of, run_until_idle
from jobspec import EventError
from jobspec_engine import Client, Event
from jobspec_engine.errors import StepError, StepFailed
from jobspec_engine.event_match import match_text
from stepkit import LONG, Work, run, send

WEST = timezone(timedelta(hours=-12))
HALF = "\ud800"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda step: step.run(HALF, print),
            StepError,
            "a step's name holds half a surrogate pair",
        ),
        (lambda step: step.run(5, print), StepError, "a step's name must be text, not int"),
        (lambda step: step.sleep("x", timedelta.max), StepError, "a thousand years are the most"),
        (lambda step: step.sleep("x", timedelta.min), StepError, "a thousand years are the most"),
        (lambda step: step.sleep("x", 5), StepError, "step `x` takes a timedelta .*, not int"),
        (
            lambda step: step.sleep_until("x", datetime.max.replace(tzinfo=WEST)),
            StepError,
            "not between the years 2 and 9998",
        ),
        (
            lambda step: step.sleep_until("x", 5),
            StepError,
            "step `x` takes a datetime to sleep until",
        ),
        (
            lambda step: step.wait_for_event("x", timeout=None),
            StepError,
            "step `x` takes a timedelta",
        ),
        (
            lambda step: step.wait_for_event("", timeout=LONG, name="x"),
            StepError,
            "the event that step `x` waits for must have 1 to 1024 bytes",
        ),
        (
            lambda step: step.wait_for_event(HALF, timeout=LONG, name="x"),
            StepError,
            "the event that step `x` waits for holds half a surrogate pair",
        ),
        (
            lambda step: step.wait_for_event("x", timeout=LONG, match={f"data.{HALF}": 1}),
            StepError,
            "step `x` matches .* write the path of a field",
        ),
        (lambda step: step.invoke("job", [1]), EventError, "must be an object"),
        (
            lambda step: step.invoke("job", {"x": object()}),
            EventError,
            "the data of step `job`.x is of type object, which is not JSON",
        ),
    ],
)
async def test_what_can_not_be_kept_is_refused(dsn, connection, call, error, message):
    async def handler(context):
        with pytest.raises(error, match=message):
            await call(context.step)
        return "caught"

    await run(dsn, handler, retries=0)
    assert run_of(connection).result == "caught"


async def test_the_longest_sleep_can_be_read_again(dsn, clock, connection):
    async def handler(context):
        await context.step.sleep_until("x", datetime(9998, 12, 31, tzinfo=UTC))
        return context.pass_number

    compiled = job(handler=handler)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    clock.set(datetime(9998, 12, 31, tzinfo=UTC))
    await run_until_idle(compiled, dsn)
    assert run_of(connection).result == 2


# Results


class Aliased(BaseModel):
    id: int = Field(alias="containerId")
    name: str = Field(validation_alias="n", serialization_alias="N")


class Broken(BaseModel):
    id: int

    @field_serializer("id")
    def refuse(self, _: int) -> int:
        raise KeyError("no form")


@dataclass
class Raw:
    data: bytes


async def test_a_model_whose_fields_have_aliases_comes_back(dsn, clock):
    seen, value = [], Aliased(containerId=1, n="x")

    async def handler(context):
        seen.append(await context.step.run("boot", lambda: value, type=Aliased))
        await context.step.sleep("rest", LONG)

    await run(dsn, handler, clock, passes=2)
    assert seen == [value, value]


@pytest.mark.parametrize(
    ("value", "kind"), [(Broken(id=1), Broken), (Raw(b"\xff"), Raw), ({HALF: 1}, dict)]
)
async def test_a_result_without_a_form_is_found_once_whatever_its_type_raises(
    dsn, connection, value, kind
):
    """Its function has done its work, and would return the same again."""
    work = Work()

    async def handler(context):
        with pytest.raises(StepFailed, match="ResultError: the result of step `x` "):
            await context.step.run("x", work, value, type=kind, retries=3)

    await run(dsn, handler)
    assert (len(work.calls), run_of(connection).state) == (1, "completed")


# Data that Postgres can't look into


PIECES = ("\ud83d", "\ude00", "\ud83d\ude00", "\0", "\\", "u", "d83d", "0000", '"', "é")


def test_a_text_is_readable_with_replacements_for_what_postgres_can_not_read(connection):
    """As it is in what a step waits for; escapes in capitals are none of another kind."""

    @given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.booleans())
    def holds(text, shouted):
        class Own:
            data = {"a": text}  # noqa: RUF012  it stands for an event

        written = json.dumps({"a": text})
        if shouted:
            written = re.sub(
                r"(?<!\\)((?:\\\\)*\\u)(d...)", lambda at: at[1] + at[2].upper(), written
            )
        query = "select jobspec.readable(%s) ->> 'a'"
        (read,) = connection.execute(query, [written]).fetchone()
        ((_, wanted),) = json.loads(match_text("x", {"data.a": text}, Own()))
        assert read == wanted

    holds()


async def test_an_event_with_half_a_pair_is_sent_and_settles_who_waits(dsn, clock, connection):
    async def handler(context):
        first = await context.step.wait_for_event("x", timeout=LONG, match={"data.a": HALF})
        second = await context.step.wait_for_event("x", timeout=LONG, match={"data.b": 2})
        return [first.data["b"], second.data["b"]]

    compiled = job(handler=handler)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    with Client(compiled, dsn) as client:
        client.send_many([Event("x", {"a": HALF, "b": 1}), Event("x", {"a": HALF, "b": 2})])
    await run_until_idle(compiled, dsn)
    assert run_of(connection).result == [1, 2]


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ("id", "write the path of a field, `data.id` say"),
        ({"data.a..b": 1}, "write the path of a field"),
        ("data.other.id", "which the run's own event does not have"),
        ({"data.id": [1]}, "with a value that is no text, number or boolean"),
        ({f"data.{'x' * 996}": 1}, "matches paths of more than 1,000 bytes in all"),
    ],
)
def test_what_can_not_be_matched_is_refused(match, message):
    class Own:
        data = {"id": 7}  # noqa: RUF012  it stands for an event

    with pytest.raises(StepError, match=message):
        match_text("stopped", match, Own())

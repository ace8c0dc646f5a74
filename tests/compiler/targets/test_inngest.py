"""The registration of jobs, beside what the reference's own Python SDK makes of the options."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from datetime import timedelta

import inngest
import pytest

from jobspec import compile, jobs
from jobspec.targets import TargetError
from jobspec.targets.inngest import registration

APP, URL = "shop", "https://jobs.example.com/api/inngest"
EVENT = inngest.TriggerEvent(event="a")
CLIENT = inngest.Inngest(app_id=APP, is_production=False)
KEY = "event.data.a + '/' + event.data.b"
CONDITION = "event.data.id == async.data.id"


def minutes(number):
    return timedelta(minutes=number)


def ours(**fields):
    """The function that a spec of these fields becomes."""
    spec = {"id": "email.send", "triggers": ["a"], **fields}
    compiled = compile(json.dumps({"jobs": [spec]}))
    (function,) = registration(compiled, app=APP, url=URL)["functions"]
    return function


def theirs(**options):
    """The function that the SDK registers for these options."""
    options = {"fn_id": "email.send", "trigger": EVENT, **options}

    @CLIENT.create_function(**options)
    async def function(ctx: inngest.Context) -> None:
        pass

    return function.get_config(URL).main.to_dict()


OPTIONS = {
    "no option": ({}, {}),
    "name": ({"name": "Send"}, {"name": "Send"}),
    "retries": ({"retries": 7}, {"retries": 7}),
    "no retries": ({"retries": 0}, {"retries": 0}),
    "idempotency": ({"idempotency": KEY}, {"idempotency": KEY}),
    "idempotency for a day": (
        {"idempotency": {"key": KEY, "window": "24h"}},
        {"idempotency": KEY},
    ),
    "debounce": (
        {"debounce": {"key": KEY, "period": "2m", "timeout": "15m"}},
        {"debounce": inngest.Debounce(key=KEY, period=minutes(2), timeout=minutes(15))},
    ),
    "debounce of all": (
        {"debounce": {"period": "7d"}},
        {"debounce": inngest.Debounce(period=timedelta(days=7))},
    ),
    "rateLimit": (
        {"rateLimit": {"limit": 3, "period": "1h30m", "key": KEY}},
        {"rate_limit": inngest.RateLimit(limit=3, period=minutes(90), key=KEY)},
    ),
    "throttle": (
        {"throttle": {"limit": 3, "period": "24h", "burst": 5, "key": KEY}},
        {"throttle": inngest.Throttle(limit=3, period=minutes(1440), burst=5, key=KEY)},
    ),
    "throttle with no burst given": (
        {"throttle": {"limit": 3, "period": "8d"}},
        {"throttle": inngest.Throttle(limit=3, period=timedelta(days=8))},
    ),
    "a number for concurrency": (
        {"concurrency": 5},
        {"concurrency": [inngest.Concurrency(limit=5)]},
    ),
    "two limits of concurrency": (
        {"concurrency": [{"limit": 5}, {"limit": 1, "key": KEY, "scope": "env"}]},
        {
            "concurrency": [
                inngest.Concurrency(limit=5),
                inngest.Concurrency(limit=1, key=KEY, scope="env"),
            ]
        },
    ),
    "priority": (
        {"priority": {"run": "event.data.paid ? 120 : 0"}},
        {"priority": inngest.Priority(run="event.data.paid ? 120 : 0")},
    ),
    "batchEvents": (
        {"batchEvents": {"maxSize": 9, "timeout": "1m", "key": KEY, "if": "event.data.a > 1"}},
        {
            "batch_events": inngest.Batch(
                max_size=9, timeout=minutes(1), key=KEY, if_exp="event.data.a > 1"
            )
        },
    ),
    "singleton": (
        {"singleton": {"key": KEY, "mode": "cancel"}},
        {"singleton": inngest.Singleton(key=KEY, mode="cancel")},
    ),
    "cancelOn": (
        {
            "cancelOn": [
                {"event": "b", "if": CONDITION, "timeout": "1d"},
                {"event": "c", "if": CONDITION},
            ]
        },
        {
            "cancel": [
                inngest.Cancel(event="b", if_exp=CONDITION, timeout=timedelta(days=1)),
                inngest.Cancel(event="c", if_exp=CONDITION),
            ]
        },
    ),
    "timeouts": (
        {"timeouts": {"start": "90s", "finish": "2h"}},
        {"timeouts": inngest.Timeouts(start=minutes(1.5), finish=minutes(120))},
    ),
    "triggers": (
        {
            "triggers": [
                {"event": "a", "if": "event.data.a > 1"},
                "b",
                {"cron": "TZ=UTC 0 4 * * *", "jitter": "30s"},
                {"cron": "5 4 * * *"},
            ]
        },
        {
            "trigger": [
                inngest.TriggerEvent(event="a", expression="event.data.a > 1"),
                inngest.TriggerEvent(event="b"),
                inngest.TriggerCron(cron="TZ=UTC 0 4 * * *", jitter="30s"),
                inngest.TriggerCron(cron="5 4 * * *"),
            ]
        },
    ),
}


@pytest.mark.parametrize(("fields", "options"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_is_sent_as_the_sdk_sends_it(fields, options):
    assert ours(**fields) == theirs(**options)


def test_every_option_that_the_sdk_has_is_compared():
    known = set(inngest.Inngest.create_function.__kwdefaults__) | {"fn_id", "trigger"}
    compared = {name for _, options in OPTIONS.values() for name in options} | {"fn_id"}
    of_code = {"middleware", "on_failure", "output_type"}
    assert known - of_code == compared


NOT_SENT = {
    "handler",  # code, which the reference calls by the address of the app
    "window",  # refused, but for the reference's own
    "retry",
    "missed",
    "attempt",
    "on_missing",
}
SENT = {
    *("id", "triggers", "name", "retries", "idempotency", "debounce", "rate_limit", "throttle"),
    *("concurrency", "priority", "batch_events", "singleton", "cancel_on", "timeouts"),
    *("event", "condition", "schedule", "jitter", "key", "period", "timeout", "limit", "burst"),
    *("scope", "max_size", "mode", "match", "start", "finish"),
}


def test_every_field_of_a_job_is_sent_or_refused_by_name():
    options = [one for one in vars(jobs).values() if is_dataclass(one)]
    ours = {jobs.CompiledJobs, *(one for one in options if one.__module__ != jobs.__name__)}
    known = {field.name for one in options if one not in ours for field in fields(one)}
    assert known == SENT | NOT_SENT


def test_the_registration_names_the_app_and_where_it_is_served():
    compiled = compile(json.dumps({"jobs": [{"id": "email.send", "triggers": ["a"]}]}))
    sent = registration(compiled, app=APP, url=URL)
    assert (sent["appname"], sent["url"]) == (APP, URL)


def test_an_app_behind_a_web_socket_is_one_in_the_registration():
    compiled = compile(json.dumps({"jobs": [{"id": "a", "triggers": ["a"]}]}))
    (function,) = registration(compiled, app=APP, url="wss://example.com")["functions"]
    assert function["steps"]["step"]["runtime"]["type"] == "ws"


@pytest.mark.parametrize(
    ("written", "sent"), [("1500ms", "1500ms"), ("24h", "24h"), ("90s", "90s"), ("169h", "169h")]
)
def test_a_batch_timeout_is_sent_as_go_reads_it(written, sent):
    batch = ours(batchEvents={"maxSize": 2, "timeout": written})["batchEvents"]
    assert batch["timeout"] == sent


def test_a_match_is_sent_as_the_condition_it_stands_for():
    cancel = [
        {"event": "b", "match": "data.id"},
        {"event": "c", "match": "data.id", "if": "async.data.now || async.data.sure"},
    ]
    assert [one["if"] for one in ours(cancelOn=cancel)["cancel"]] == [
        "event.data.id == async.data.id",
        "(async.data.now || async.data.sure) && event.data.id == async.data.id",
    ]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"on_missing": "reject"}, "`on_missing` of job `email.send`"),
        (
            {"idempotency": {"key": "event.data.a", "window": "while-active"}},
            "`idempotency.window` of job `email.send`",
        ),
        (
            {"triggers": ["a", {"cron": "5 4 * * *", "missed": "once"}]},
            "`triggers[1].missed` of job `email.send`",
        ),
        ({"retry": {"jitter": 0.1}}, "`retry` of job `email.send`"),
        ({"timeouts": {"attempt": "1s"}}, "`timeouts.attempt` of job `email.send`"),
        (
            {"idempotency": {"key": "event.data.a", "window": "2h"}},
            "`idempotency.window` of job `email.send`",
        ),
    ],
)
def test_an_option_that_the_reference_has_not_is_refused_by_name(fields, named):
    with pytest.raises(TargetError, match="Inngest can't honour") as caught:
        ours(**fields)
    assert named in str(caught.value)

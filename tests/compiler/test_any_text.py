"""Whatever stands in a file: findings inside it, or compiled jobs, and never another exception."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobspec import CompileError, check, compile
from jobspec.diagnostics import Severity
from jobspec.source import Source

GOOD = """\
# jobs of the whole product
events: {}
jobs:
  - id: email.send
    triggers: [{event: email.send, if: event.data.to != null}, {cron: TZ=Europe/Rome 0 4 * * *}]
    handler: myapp.jobs:send_email
    idempotency: event.data.idempotencyKey
    retries: 4
    timeouts: {start: 1h, finish: 2h30m}
  - id: system.code-graph-refresh
    triggers: [{event: github/push}]
    debounce:
      key: >-
        event.data.installationId + '/' +
        event.data.repoOwner
      period: 2m
      timeout: 15m
    concurrency: [{limit: 5}, {limit: 1, scope: env, key: "'all' + event.data.\\u0061"}]
    priority: {run: "event.data.paid ? 120 : 0"}
    cancelOn: [{event: github/deleted, if: event.data.id == async.data.id, timeout: 1d}]
  - id: metrics.store
    triggers: [metric/measured]
    batchEvents: {maxSize: 50, timeout: 5s, key: event.data.host}
    on_missing: reject
"""

TYPED = """\
events:
  github/push:
    schema:
      type: object
      required: [owner, name, size]
      properties:
        owner: {type: string, pattern: "^[a-z-]+$"}
        name: {type: [string, "null"]}
        size: {type: integer}
        by: {$ref: "#/$defs/person"}
      $defs: {person: {type: object, properties: {id: {type: string, format: uuid}}}}
  email.send:
jobs:
  - id: refresh
    triggers: [{event: github/push, if: event.data.size > 10}]
    # jobspec: ignore[JS206] a name is never null in fact
    debounce: {key: event.data.owner + '/' + event.data.name, period: 2m}
    retry: {policy: exponential, delay: 1s, on: [{error: "builtins:ValueError", policy: never}]}
  - {id: send, triggers: [email.send], idempotency: {key: event.data.key, window: 24h}}
"""
JSON = """\
{
  "jobs": [
    {
      "id": "email.send",
      "triggers": [{"event": "email.send"}, {"cron": "0 4 * * *", "jitter": "30s"}],
      "idempotency": "event.data.id + '\\u002f' + event.data.to",
      "throttle": {"limit": 10, "period": "1m", "burst": 2, "key": "event.data.\\u0061"},
      "singleton": {"mode": "skip"}
    }
  ]
}
"""
FILES = {"good.yaml": GOOD, "typed.yaml": TYPED, "good.json": JSON}

FRAGMENTS = st.sampled_from(
    [
        *"\n \t:-,[]{}\"'#&*!|>%@`\\0\x00\ufeff\u2028é",
        "- ",
        ": ",
        "  ",
        "null",
        "!!python/object:os.system ",
        "<<: *a",
        "&a ",
        "---\n",
        "1e999",
        "event.data.",
        "日本",
        "jobs:",
    ]
)


@st.composite
def edited(draw):
    """A good file after a few random edits: parts removed, doubled, or put in."""
    name, text = draw(st.sampled_from(sorted(FILES.items())))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        middle = draw(
            st.one_of(FRAGMENTS, st.just(""), st.just(text[start:end] * 2), st.text(max_size=4))
        )
        text = text[:start] + middle + text[end:]
    return Source(name, text)


def holds_up(source):
    findings = check(source)
    for found in findings:
        assert 0 <= found.span.start <= found.span.end <= len(found.source.text)
        assert found.message == found.message.strip()
        assert "\n" not in found.message
    if any(found.severity is Severity.ERROR for found in findings):
        with pytest.raises(CompileError) as caught:
            compile(source)
        assert caught.value.diagnostics == findings
    else:
        compile(source)


@pytest.mark.parametrize("name", FILES)
def test_the_files_that_are_edited_have_no_errors(name):
    findings = check(Source(name, FILES[name]))
    assert not [found for found in findings if found.severity is Severity.ERROR]


@settings(max_examples=settings.default.max_examples // 2)
@given(edited())
def test_an_edited_file_gives_findings_or_jobs(source):
    holds_up(source)


@settings(max_examples=settings.default.max_examples // 10)
@given(st.sampled_from(sorted(FILES)), st.text(max_size=60))
def test_any_text_gives_findings_or_jobs(name, text):
    holds_up(Source(name, text))

"""The command `jobspec` as tests run it, and a spec like that of the demo."""

from __future__ import annotations

import sys

from click.testing import CliRunner

from jobspec.cli import main

JOBS = """
jobs:
  - id: email.send
    triggers: [{event: email.send}]
    handler: jobspec_engine.demo.handlers:send_email
    idempotency: event.data.key
  - id: system.code-graph-refresh
    triggers: [{event: github/push}]
    handler: jobspec_engine.demo.handlers:refresh_code_graph
    debounce: {key: event.data.repository, period: 2m, timeout: 15m}
"""
EMAIL = '{"key": "welcome-42", "to": "ada@example.com"}'


def stay_in(folder, monkeypatch, files):
    """Have commands run in a folder with these files: texts by name."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def jobspec(*arguments, **options):
    """Run a command, on the database that the environment names."""
    return CliRunner().invoke(main, list(arguments), prog_name="jobspec", **options)


def send_email(*options):
    return jobspec("send", "email.send", EMAIL, "--jobs", "jobs.yaml", *options)

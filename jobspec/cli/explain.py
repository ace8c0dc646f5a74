"""`jobspec explain`: the page of a code."""

from __future__ import annotations

from importlib.resources import files

import click

from jobspec.diagnostics import RULES
from jobspec.spec import suggestion


@click.command("explain")
@click.argument("code")
def command(code: str) -> None:
    """Explain the code of a finding, such as JS301.

    It says what the code finds, why that is bad, and what to write instead.
    """
    names = {rule.name: rule.code for rule in RULES.values()}
    known = names.get(code, code.upper())
    if known not in RULES:
        advice = suggestion(code, (*RULES, *names)) or "see docs/diagnostics for all of them"
        raise click.UsageError(f"there is no code `{code}`; {advice}")
    page = files("jobspec") / "explanations" / f"{known}.md"
    click.echo(page.read_text(encoding="utf-8"), nl=False)

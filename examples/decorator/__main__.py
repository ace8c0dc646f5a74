"""Jobs declared in Python, beside their handlers."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import jobspec
from examples.database import database
from jobspec_engine import Context, Engine

registry = jobspec.Registry()


@registry.job(
    id="email.send",
    triggers=["email.send"],
    idempotency="event.data.idempotencyKey",
    retries=4,
)
async def send_email(context: Context) -> None:
    print(f"sent to {context.event.data['to']}")


@registry.job(
    id="system.code-graph-refresh",
    triggers=["github/push"],
    debounce={
        "key": "event.data.repoOwner + '/' + event.data.repoName",
        "period": timedelta(minutes=2),
        "timeout": timedelta(minutes=15),
    },
)
def refresh_code_graph(context: Context) -> None:
    print(f"refreshed at {context.event.data['commit']}")


def declare_a_broken_one() -> None:
    """A key that can't be resolved is refused where it is declared, before anything runs."""
    try:
        registry.job(id="invoice.pay", triggers=["invoice.due"], idempotency="event.data.ids[0]")
    except jobspec.CompileError as error:
        print(f"refused: {error.diagnostics[0].message}")


async def main(dsn: str) -> None:
    # An idempotency key holds for good, so a second start of this example needs another one.
    email = {"idempotencyKey": str(uuid4()), "to": "ada@example.com"}
    async with Engine(jobspec.compile(registry), dsn) as engine:
        for _ in range(2):
            sent = await engine.send("email.send", email)
            print(f"email.send: {sent.jobs[0].outcome}")
        await engine.worker().run(until_idle=True)


if __name__ == "__main__":
    declare_a_broken_one()
    with database() as dsn:
        asyncio.run(main(dsn))

"""Calls of the provider: what a supervisor asks of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

SlotOutcome = Literal["granted", "already_held", "full", "over"]


@dataclass(frozen=True)
class Container:
    """A container, and when it was booted by the provider's clock, in seconds since 1970."""

    id: str
    booted_at: float


@dataclass(frozen=True)
class Reading:
    """What a container is doing, and what the provider's clock says."""

    state: Literal["booting", "running", "done", "gone"]
    now: float


class UnreadableError(Exception):
    """The provider does not answer, or not now: nothing is known."""


@dataclass(frozen=True)
class Calls:
    """Calls of the provider at an address, about whatever goes by one key."""

    address: str
    key: str

    async def take_slot(self) -> SlotOutcome:
        """Ask for a slot."""
        outcome: SlotOutcome = (await self._call("PUT", "slots"))["outcome"]
        return outcome

    async def release_slot(self) -> None:
        """Give the slot back."""
        await self._call("DELETE", "slots")

    async def boot(self) -> Container:
        """Boot a container, or be told of the one that was booted for this key."""
        return Container(**await self._call("PUT", "containers"))

    async def read(self) -> Reading:
        """Read what the container is doing. Raises `UnreadableError`."""
        return Reading(**await self._call("GET", "containers"))

    async def tear_down(self) -> None:
        """Tear the container down."""
        await self._call("DELETE", "containers")

    async def _call(self, method: str, kind: str) -> dict[str, Any]:
        try:
            status, value = await request(self.address, method, f"/{kind}/{quote(self.key, '')}")
        except (OSError, asyncio.IncompleteReadError) as error:
            raise UnreadableError(str(error)) from error
        if status != 200:
            raise UnreadableError(f"{method} {kind}: {status}")
        return value


async def request(
    address: str, method: str, path: str, body: object = None
) -> tuple[int, dict[str, Any]]:
    """Make an HTTP request; return the status and the value that it is answered by."""
    host, _, port = address.partition(":")
    text = b"" if body is None else json.dumps(body).encode()
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        head = f"{method} {path} HTTP/1.0\r\nContent-Length: {len(text)}\r\n\r\n"
        writer.write(head.encode() + text)
        await writer.drain()
        answered = (await reader.readuntil(b"\r\n\r\n")).decode()
        status, *headers = answered.split("\r\n")
        (length,) = (line.split(":")[1] for line in headers if line.startswith("Content-Length:"))
        value: dict[str, Any] = json.loads(await reader.readexactly(int(length)))
    finally:
        writer.close()
    return int(status.split()[1]), value

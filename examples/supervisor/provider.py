"""A provider of containers, and of the slots that bound how many there are: a small HTTP server.

It runs in a process of its own, and remembers what it was asked for: each thing is done once for a
key, and for that key only. So a caller that died, or was frozen, and asks again changes nothing.

    PUT /slots/KEY          granted, already_held, full, or over: it was released before
    DELETE /slots/KEY       gives the slot back
    PUT /containers/KEY     boots a container; later calls tell of the same one
    GET /containers/KEY     its state and the provider's time; 503 while it is unreadable
    DELETE /containers/KEY  tears it down
    GET /log                what was done, in order; how often that was asked for, and reads
    PUT /control            sets a few attributes of the provider, for tests and demonstrations
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


@dataclass
class Container:
    """A container, which is torn down at some time and stays known."""

    id: str
    booted_at: float
    reads: int = 0
    torn_down: bool = False


@dataclass
class Provider:
    """What the provider knows, and how it is to behave."""

    capacity: int = 1_000
    ready_after: int = 1  # reads
    done_after: int = 2  # reads
    unreadable: int = 0  # how many of the next reads fail
    failing_boots: int = 0  # how many of the next boots fail
    slow: float = 0.0  # seconds that a read takes
    ahead: float = 0.0  # seconds that its clock is ahead
    slots: dict[str, bool] = field(default_factory=dict[str, bool])  # by key: held still?
    containers: dict[str, Container] = field(default_factory=dict[str, Container])
    log: list[list[str]] = field(default_factory=list[list[str]])
    asked: Counter[str] = field(default_factory=Counter[str])  # by key: for how much in all

    def answer(self, method: str, kind: str, key: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Answer a request by an HTTP status and a value."""
        self.asked[key] += method != "GET"
        match method, kind:
            case "PUT", "slots":
                return 200, {"outcome": self._take_slot(key)}
            case "DELETE", "slots":
                return 200, {"released": self._release_slot(key)}
            case "PUT", "containers":
                return self._boot(key)
            case "GET", "containers":
                return self._read(key)
            case "DELETE", "containers":
                return 200, {"torn_down": self._tear_down(key)}
            case "GET", "log":
                reads = {key: container.reads for key, container in self.containers.items()}
                return 200, {"log": self.log, "reads": reads, "asked": self.asked}
            case "PUT", "control":
                for name, value in body.items():
                    setattr(self, name, value)
                return 200, {}
            case _:
                return 404, {}

    def _take_slot(self, key: str) -> str:
        if key in self.slots:
            return "already_held" if self.slots[key] else "over"
        if sum(self.slots.values()) >= self.capacity:
            return "full"
        self.slots[key] = True
        self.log.append(["slot taken", key])
        return "granted"

    def _release_slot(self, key: str) -> bool:
        if not self.slots.get(key):
            return False
        self.slots[key] = False
        self.log.append(["slot released", key])
        return True

    def _boot(self, key: str) -> tuple[int, Any]:
        if self.failing_boots:
            self.failing_boots -= 1
            return 500, {}
        if key not in self.containers:
            self.containers[key] = Container(f"container-{len(self.containers) + 1}", self._now())
            self.log.append(["booted", key])
        container = self.containers[key]
        return 200, {"id": container.id, "booted_at": container.booted_at}

    def _read(self, key: str) -> tuple[int, Any]:
        container = self.containers[key]
        container.reads += 1
        if self.unreadable:
            self.unreadable -= 1
            return 503, {}
        return 200, {"state": self._state(container), "now": self._now()}

    def _state(self, container: Container) -> str:
        if container.torn_down:
            return "gone"
        if container.reads > self.done_after:
            return "done"
        return "running" if container.reads > self.ready_after else "booting"

    def _tear_down(self, key: str) -> bool:
        container = self.containers[key]
        if container.torn_down:
            return False
        container.torn_down = True
        self.log.append(["torn down", key])
        return True

    def _now(self) -> float:
        return time.time() + self.ahead


PROVIDER = Provider()
_LOCK = threading.Lock()


class Requests(BaseHTTPRequestHandler):
    """Takes requests and gives the provider's answers, each in one piece."""

    wbufsize = -1

    def handle_any(self) -> None:
        """Answer one request."""
        _, kind, key, *_ = f"{self.path}//".split("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if (self.command, kind) == ("GET", "containers"):
            time.sleep(PROVIDER.slow)
        with _LOCK:
            status, value = PROVIDER.answer(
                self.command, kind, unquote(key), json.loads(body or b"{}")
            )
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_DELETE = handle_any  # noqa: N815  http.server calls them so

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as it is in the base
        """Print nothing."""


def main() -> None:
    """Serve, and tell where."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    print(f"127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

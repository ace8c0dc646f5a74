"""Senders that send until they are told to stop, and what they know afterwards."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg

from enginekit import until
from jobspec_engine import Client

KEYS = 7  # of each kind: few, so that they meet
MOST_BEHIND = 60  # events of `plain` that wait for their runs, before senders wait
MOST_TRIES = 100  # until an event is acknowledged
BURST = 6  # events that follow each other with one key


@dataclass
class Ledger:
    """What was sent and acknowledged: what the runs afterwards are held to."""

    # By kind, the data of events whose send returned, by event id.
    sent: dict[str, dict[str, dict]] = field(default_factory=lambda: defaultdict(dict))
    # By key of `keyed`: the payloads that were tried, in order, and those whose call returned.
    tried: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    added: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    errors: int = 0

    def __str__(self):
        return f"{self.events} events, {self.errors} errors to their senders"

    @property
    def events(self):
        return sum(map(len, self.sent.values())) + sum(map(len, self.added.values()))


class Senders:
    """Threads that send through some addresses; an error of one stops them all."""

    def __init__(self, jobs, addresses, behind, rng):
        self.ledger = Ledger()
        self._behind = behind
        self._stopped = threading.Event()
        self._failed = []
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._send, args=(jobs, dsn, name, rng.random()))
            for name, dsn in enumerate(addresses)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info):
        self.stop()

    def stop(self):
        """Let each sender have its last event acknowledged; raise what one of them raised."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        if self._failed:
            raise self._failed.pop()

    def _send(self, jobs, dsn, name, seed):
        try:
            with Client(jobs, dsn, connect_timeout=timedelta(seconds=2)) as client:
                self._send_all(client, _Sender(name, seed))
        except Exception as error:  # noqa: BLE001  it is raised in the test's thread
            self._failed.append(error)
            self._stopped.set()

    def _send_all(self, client, sender):
        while not self._stopped.is_set():
            for kind, event_id, data in sender.round():
                self._acknowledged(client, kind, event_id, data)
            until(lambda: self._stopped.is_set() or self._behind(self.ledger) < MOST_BEHIND)

    def _acknowledged(self, client, kind, event_id, data):
        """Send until it is acknowledged, with the same event id each time."""
        for _ in range(MOST_TRIES):
            try:
                self._call(client, kind, event_id, data)
            except psycopg.OperationalError:
                self.ledger.errors += 1
            else:
                break
        else:
            raise AssertionError(f"{event_id} was never acknowledged")
        with self._lock:
            if kind == "keyed":
                self.ledger.added[data["key"]].append(data["n"])
            else:
                self.ledger.sent[kind][event_id] = data

    def _call(self, client, kind, event_id, data):
        if kind == "keyed":
            with self._lock:
                self.ledger.tried[data["key"]].append(data["n"])
            client.add_job("keyed", data, job_key=data["key"], delay=timedelta(milliseconds=200))
        else:
            client.send(f"chaos/{kind}", data, id=event_id)


class _Sender:
    """What one sender sends. Its keys of `keyed` are its own: their order is known."""

    def __init__(self, name, seed):
        self._name = name
        self._numbers = itertools.count()
        self._seed = int(seed * 1000)

    def round(self):
        """Yield a few events of each kind: the kind, the event's id, the data."""
        for kind in ("plain", "once", "failing", "stepped"):
            yield self._event(kind)
        for _ in range(BURST):
            yield self._event("burst")
            yield self._event("keyed")
            yield self._event("plain")

    def _event(self, kind):
        n = next(self._numbers)
        key = f"{self._name}-{(n + self._seed) % KEYS}" if kind == "keyed" else f"{n % KEYS}"
        data = {"n": n, "key": key, "failures": n % 6}
        return kind, f"{kind}-{self._name}-{n}", data

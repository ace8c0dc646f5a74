"""Jobs that debounce by a key of their events, and sends to them."""

from __future__ import annotations

from datetime import timedelta

PERIOD, TIMEOUT = timedelta(seconds=10), timedelta(seconds=30)
BY_KEY = {"debounce": {"key": "event.data.key", "period": PERIOD, "timeout": TIMEOUT}}
BOTH = {"idempotency": "event.data.once", **BY_KEY}


def send(client, key="k", **options):
    (dispatched,) = client.send("event", {"key": key}, **options).jobs
    return dispatched


def send_once(client, once, key="k", **options):
    (dispatched,) = client.send("event", {"once": once, "key": key}, **options).jobs
    return dispatched

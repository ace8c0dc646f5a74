"""Cost of a key, as ratios to Python written by hand for it: `python tests/bench/bench_keys.py`.

The rounds take turns, so that a busy machine slows all of them down; each ratio is the median over
the rounds of what one round measured.
"""

from __future__ import annotations

import statistics
import sys
import timeit

from jobspec import KeyTemplate

MAIN = "event.data.installationId + '/' + event.data.repoOwner + '/' + event.data.repoName"
TEXTS = {"installationId": "48151623", "repoOwner": "octo-org", "repoName": "hello-world", "n": 42}
ROUNDS, CALLS = 25, 20_000


def event(**data):
    return {"id": "01HZX", "name": "github/push", "data": TEXTS | data, "ts": 1_700_000_000_000}


def by_hand(event):
    data = event["data"]
    return f"{data['installationId']}/{data['repoOwner']}/{data['repoName']}"


def contestants():
    template = KeyTemplate.parse(MAIN)
    texts, number, accent = event(), event(installationId=48151623), event(repoOwner="é")
    missing = event()
    del missing["data"]["repoName"]
    long = KeyTemplate.parse(" + '/' + ".join(["event.data.repoOwner"] * 500))
    return {
        "by hand (f-string)": (lambda: by_hand(texts), CALLS),
        "texts": (lambda: template.resolve(texts), CALLS),
        "a number among them": (lambda: template.resolve(number), CALLS // 10),
        "not all ASCII": (lambda: template.resolve(accent), CALLS // 10),
        "a field missing": (lambda: template.resolve(missing), CALLS // 10),
        "999 terms": (lambda: long.resolve(texts), CALLS // 200),
        "parse": (lambda: KeyTemplate.parse(MAIN), CALLS // 200),
    }


def main():
    rounds: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        measured = {
            name: timeit.timeit(call, number=count) / count * 1e9
            for name, (call, count) in contestants().items()
        }
        for name, nanoseconds in measured.items():
            rounds.setdefault(name, []).append(nanoseconds)
            ratios.setdefault(name, []).append(nanoseconds / measured["by hand (f-string)"])
    sys.stdout.write(f"{'one key':<22} {'ns':>10} {'to by hand':>11}\n")
    for name, values in rounds.items():
        middle, ratio = statistics.median(values), statistics.median(ratios[name])
        sys.stdout.write(f"{name:<22} {middle:>10,.0f} {ratio:>11.1f}\n")


if __name__ == "__main__":
    main()

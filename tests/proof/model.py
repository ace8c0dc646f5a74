"""What the engine promises, as a program over lists and dicts: read it as the specification.

It has no database, no locks and no batches: every call happens at once and alone, at `now`, which
stands still until somebody moves it, forward or back. The engine must not be told from it,
whatever happens there at the same moment. `Model` takes compiled jobs, and is asked what `Client`
and a worker are asked. Which ticks a schedule has is in `schedules.py`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from proof.entities import FREE, Event, Memo, Run, UsedKey, milliseconds
from proof.schedules import Schedules

ADDED = "jobspec/job.added"
INVOKED = "jobspec/job.invoked"
TICKED = "inngest/scheduled.timer"


class Model:
    """The engine. Runs that were pruned are in `runs` no more, wherever else they are named."""

    def __init__(self, jobs, now):
        self.jobs = jobs
        self.now = now
        self.events = {}  # by id
        self.runs = []  # in the order in which they were enqueued
        self.keys = {}  # by job id and idempotency key
        self.outcomes = {}  # by event id and job id, where no run tells what became of the event
        self.schedules = Schedules(jobs)
        self.paused = set()

    # Sending. An event id that is known starts nothing again, for as long as the event is kept.

    def send(self, event_id, name, data, ts=None):
        """Return what becomes of an event: by job, the outcome and the run."""
        triggered = self.jobs.for_event(name)
        if event_id in self.events:
            return {job.id: ("duplicate", self.run_of(event_id, job.id)) for job in triggered}
        event = self.receive(event_id, name, data, ts)
        return {job.id: self.dispatch(event, job, self.keys_of(job, event)) for job in triggered}

    def receive(self, event_id, name, data, ts):
        """Keep an event, and settle each step that waits for one of its name."""
        event = self.keep(event_id, name, data, ts)
        for run in filter(lambda run: run.alive, self.runs):
            for memo in run.memos.values():
                waits = memo.kind == "wait" and memo.state == "waiting" and memo.wake_at > self.now
                if waits and memo.event_name == name:
                    memo.state, memo.result = "done", event.id
                    self.signal(run)
        return event

    def keep(self, event_id, name, data, ts=None):
        at = milliseconds(self.now) if ts is None else ts
        return self.events.setdefault(event_id, Event(event_id, name, data, at, self.now))

    def keys_of(self, job, event):
        """Return the keys that count: for idempotency and debounce, `error` for one in error."""
        scope = {"name": event.name, "data": event.data}
        once = job.idempotency and job.idempotency.key.resolve(scope)
        burst = job.debounce and job.debounce.key.resolve(scope)
        error = "error" in [key.outcome for key in (once, burst) if key]
        # An absent idempotency key does not apply; a debounce key applies whatever its outcome.
        once = once.text if once and once.outcome == "key" else None
        return once, "error" if error else burst.text if burst else None

    def dispatch(self, event, job, keys):
        """Start a job on an event. Where it has both keys idempotency is decided first."""
        once, burst = keys
        used = self.use(job, once)
        if used is not None and used.run is not None:
            return self.told(event, job.id, "duplicate", used.run)
        outcome, run = self.enqueue(event, job, burst)
        if used is not None:
            used.run = run
        if burst is not None and burst != "error":
            self.told(event, job.id, outcome, run)
        return outcome, run

    def use(self, job, once):
        """Count an idempotency key, as one that is new if it is free; None: there is none."""
        if once is None:
            return None
        used = self.keys.get((job.id, once))
        if used is not None and (used.expires_at is None or used.expires_at > self.now):
            used.events += 1
            return used
        window = job.idempotency.window
        until = self.now + window if isinstance(window, timedelta) else None
        new = UsedKey(None, self.now, until, window == "while-active")
        self.keys[job.id, once] = new
        return new

    def enqueue(self, event, job, burst):
        """Make a run, or join the one with this debounce key that was never claimed."""
        if burst is None or burst == "error":
            run = self.add(Run(job.id, event, event.ts, self.now, self.now, job.retries + 1))
            if burst == "error":  # neither lost nor merged: it can be replayed with other data
                self.end(run, "failed", "key-error")
                return "dead-letter", run
            return "enqueued", run
        debounce = job.debounce
        due = self.now + debounce.period
        bound = debounce.timeout and self.now + debounce.timeout
        new = Run(
            job.id, event, event.ts, self.now, min(due, bound or due), job.retries + 1,
            run_by=bound, burst=burst, mode="debounce",
        )  # fmt: skip
        return self.join_or_add(new)

    def join_or_add(self, new):
        """Let a run join the one that waits with its key, which keeps its id; or add it."""
        kept = self.waiting(new.job_id, new.burst)
        if kept is None:
            return "enqueued", self.add(new)
        kept.events += 1
        kept.mode = new.mode
        # "Latest" is by the events' own time. An older one that arrives late changes nothing.
        latest = new.ts >= kept.ts or new.event.name == ADDED
        if new.mode == "debounce" and latest:
            kept.run_by = kept.run_by or new.run_by
            kept.run_at = max(kept.run_at, new.run_at)
            kept.run_at = min(kept.run_at, kept.run_by) if kept.run_by else kept.run_at
        if new.mode == "replace":
            kept.run_at, kept.run_by = new.run_at, None
        if new.mode != "unsafe_dedupe":
            kept.event = new.event if latest else kept.event
            kept.max_attempts = new.max_attempts
            kept.priority = new.priority if new.event.name == ADDED else kept.priority
        kept.ts = max(kept.ts, new.ts)
        return "coalesced", kept

    def waiting(self, job_id, burst):
        """Return the run that an event or a call with this key joins."""
        key = (job_id, burst)
        return next((r for r in self.runs if (r.job_id, r.burst) == key and r.joinable), None)

    def add(self, run):
        self.runs.append(run)
        return run

    def told(self, event, job_id, outcome, run):
        self.outcomes[event.id, job_id] = (outcome, run)
        return outcome, run

    def run_of(self, event_id, job_id):
        """Return the run that an event has, or that it joined or was the duplicate of."""
        found = (r for r in self.runs if (r.event.id, r.job_id) == (event_id, job_id))
        _, told = self.outcomes.get((event_id, job_id), (None, None))
        return next(found, told)

    def add_job(self, event_id, job_id, payload, key=None, mode="replace", **options):
        """Add a run without an event of the caller's; with a key it joins the one that waits.

        `options` are `delay`, `max_debounce`, `priority` and `max_attempts`.
        """
        event = self.keep(event_id, ADDED, payload)
        bound = options.get("max_debounce") and self.now + options["max_debounce"]
        due = self.now + options.get("delay", timedelta(0))
        new = Run(
            job_id, event, event.ts, self.now, min(due, bound or due),
            options.get("max_attempts", self.jobs[job_id].retries + 1),
            run_by=bound, burst=key, mode=key and mode, priority=options.get("priority", 0),
        )  # fmt: skip
        if key is None:
            return "enqueued", self.add(new)
        return self.told(event, job_id, *self.join_or_add(new))

    # Claims, leases and ends. Who writes must hold the lease: the token of the latest claim.

    def claim(self, job_ids, limit, lease, token, first=()):
        """Take runs that are due: by priority, the longest due first. None of a paused job.

        Of those due since the same moment any may be taken before others: `first` are ids of such.
        """
        due = [
            run
            for run in self.runs
            if run.state == "pending"
            and run.run_at <= self.now
            and run.job_id in job_ids
            and run.job_id not in self.paused
        ]
        due.sort(key=lambda run: (run.priority, run.run_at, run.id not in first))
        for run in due[:limit]:
            run.state, run.signalled = "running", False
            run.attempt, run.passes = run.attempt + 1, run.passes + 1
            run.first_claimed_at = run.first_claimed_at or self.now
            run.token, run.lease_until = token, self.now + lease
        return due[:limit]

    def held(self, run, token):
        return run in self.runs and run.state == "running" and run.token == token

    def heartbeat(self, run, token, lease):
        """Extend a lease; return whether it is held, and whether its run was asked to end."""
        if not self.held(run, token):
            return None
        run.lease_until = self.now + lease
        return run.cancel_requested

    def complete(self, run, token):
        """End a run with success; return whether it was held."""
        return self.held(run, token) and self.end(run, "completed")

    def fail(self, run, token, delay=None, reason="attempts-used", finish=None):
        """End an attempt: the run is retried after `delay`, without one it is a dead letter."""
        if not self.held(run, token):
            return False
        run.errors, run.passes = run.errors + 1, 0
        if delay is not None:
            run.run_at = self.within(run, self.now + delay, finish)
        if run.cancel_requested:
            return self.end(run, "cancelled")
        if delay is not None:
            return self.give_back(run)
        return self.end(run, "cancelled" if reason.endswith("-timeout") else "failed", reason)

    def release(self, run, token, wake_at=None, finish=None, *, entered=True):
        """Give a run back that waits for a step, or in its old place; no attempt is used up."""
        if not self.held(run, token):
            return False
        run.passes -= not entered
        waits = wake_at is not None and not run.signalled
        if entered:
            run.run_at = self.within(run, wake_at, finish) if waits else self.now
        if run.cancel_requested:
            run.errors += 1
            return self.end(run, "cancelled")
        run.attempt -= 1
        return self.give_back(run)

    def within(self, run, at, finish):
        """Cut a wait where the run will have lasted for as long as it may."""
        return at if finish is None else min(at, run.first_claimed_at + finish)

    def give_back(self, run):
        run.state, run.token, run.lease_until = "pending", None, None
        return True

    def reclaim(self, max_refunds):
        """Make runs ready whose lease ran out. The attempt is given back, a bounded number of
        times; a run that kills its workers ends as a dead letter."""
        expired = [r for r in self.runs if r.state == "running" and r.lease_until < self.now]
        for run in expired:
            used_up = run.refunds >= max_refunds
            run.errors, run.run_at = run.errors + 1, self.now
            run.passes = 0 if used_up else run.passes
            run.refunds = min(run.refunds + 1, max_refunds)
            if run.cancel_requested:
                self.end(run, "cancelled")
            elif used_up and not run.has_attempts_left:
                self.end(run, "failed", "crash-loop")
            else:
                run.attempt -= not used_up
                self.give_back(run)
        return expired

    def end(self, run, state, reason=None):
        """End a run, free the key that held while it was active, tell the run that waits for it."""
        run.state, run.token, run.lease_until, run.finished_at = state, None, None, self.now
        run.died = reason and (reason, self.now)
        for used in self.keys.values():
            if used.run is run and used.while_active:
                used.expires_at = FREE
        if run.parent is not None:
            for memo in (memo for other in self.runs for memo in other.memos.values()):
                if memo.child is run and memo.state == "waiting":
                    memo.state = "done" if state == "completed" else "failed"
            self.signal(run.parent)
        return True

    def signal(self, run):
        """Let a run go on that has waited for a step: at once, also if it is about to wait."""
        if run in self.runs and run.alive:
            run.signalled = True
            run.run_at = self.now if run.state == "pending" else run.run_at

    # Steps. A memo that is settled stays as it is.

    def remember(self, run, token, name, memo):
        """Keep what a step gave, or what it waits for; return what is kept, None: not held."""
        if not self.held(run, token):
            return None
        kept = run.memos.get(name)
        if kept is None:
            kept = run.memos[name] = memo
        elif kept.state == "waiting":
            kept.state, kept.result, kept.wake_at = memo.state, memo.result, memo.wake_at
        return kept

    def invoke(self, run, token, name, job_id, event_id):
        """Start a run, once, whose end settles the step."""
        if not self.held(run, token):
            return None
        if name not in run.memos:
            event = self.keep(event_id, INVOKED, {})
            attempts = self.jobs[job_id].retries + 1
            child = Run(job_id, event, event.ts, self.now, self.now, attempts, parent=run)
            run.memos[name] = Memo("invoke", "waiting", child=self.add(child))
        return run.memos[name]

    # What people do to runs.

    def cancel(self, run):
        """Ask a run to end: one that waits ends at once, a running one where it would go on."""
        if run not in self.runs:
            return "unknown"
        if not run.alive:
            return "ended"
        run.cancel_requested = True
        if run.state == "running":
            return "requested"
        self.end(run, "cancelled")
        return "cancelled"

    def cancel_by_key(self, job_id, once=None, burst=None):
        """Ask the runs of a job to end that go by a key."""
        used = self.keys.get((job_id, once))
        runs = [
            r for r in self.runs if burst is not None and (r.job_id, r.burst) == (job_id, burst)
        ]
        runs += [used.run] if used and used.run in self.runs else []
        return {run: self.cancel(run) for run in runs if run.alive}

    def replay(self, run):
        """Send a run again that ended without success, once, by a key of its own."""
        if run not in self.runs:
            return "unknown", None
        if run.state not in ("failed", "cancelled"):
            return "not-dead", None
        if run.replayed_as is not None:
            return "duplicate", run.replayed_as
        job, old = self.jobs[run.job_id], run.event
        once, burst = (None, None) if old.name == ADDED else self.keys_of(job, old)
        if burst == "error":
            return "unresolved", None
        once = once and f"{once}:replay:{run.id}"
        event = self.receive(f"jobspec/replay/{run.id}", old.name, old.data, old.ts)
        _, new = self.dispatch(event, job, (once, None))
        new.priority = run.priority
        new.max_attempts = run.max_attempts if old.name == ADDED else new.max_attempts
        run.replayed_as = new
        if run.died and run.died[0] == "step-drift":
            self.hand_on(run, new)
        return "enqueued", new

    def hand_on(self, run, new):
        """Let a run go on where one whose steps had changed was: with its memos, for its event."""
        new.event.stands_for = run.event.told_id
        new.memos = {name: replace(memo) for name, memo in run.memos.items()}
        for child in (memo.child for memo in run.memos.values() if memo.child):
            if child.alive and child.parent is run:
                child.parent = new

    def tick(self):
        """Send the ticks of schedules that start a job: each once."""
        for job, cron, at in self.schedules.deal(self.now, self.paused):
            event_id = "/".join(["cron", *cron, at.isoformat()])
            if event_id not in self.events:
                event = self.receive(event_id, TICKED, {"cron": cron[1]}, milliseconds(at))
                self.dispatch(event, job, self.keys_of(job, event))

    def prune(self, age, left=()):
        """Delete what is older: dead letters, then ended runs without one, then events that
        nothing has. An idempotency key goes when it is free, whatever its age.

        After the clock was put back a run may be `left`, by its id, until all behind it are old.
        """
        old = self.now - age
        for run in self.runs:
            if run.died and run.died[1] < old:
                run.died = None
        self.runs = [
            r for r in self.runs if r.alive or r.finished_at >= old or r.died or r.id in left
        ]
        needed = {run.event.id for run in self.runs}
        gone = {e.id for e in self.events.values() if e.received_at < old and e.id not in needed}
        self.events = {id_: event for id_, event in self.events.items() if id_ not in gone}
        self.outcomes = {at: told for at, told in self.outcomes.items() if at[0] not in gone}
        self.keys = {
            at: used
            for at, used in self.keys.items()
            if used.expires_at is None or used.expires_at > self.now
        }

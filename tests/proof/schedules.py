"""What the engine promises of schedules: which of their ticks start a job, as a program."""

from __future__ import annotations

from datetime import timedelta

from jobspec import CronTrigger

MINUTE, WEEK = timedelta(minutes=1), timedelta(days=7)


class Schedules:
    """The schedules of some jobs. Each is known since somebody first looked at it."""

    def __init__(self, jobs):
        self.crons = [
            (job, trigger)
            for job in jobs.values()
            for trigger in job.triggers
            if isinstance(trigger, CronTrigger)
        ]
        self.standing = {}  # by job id and text: up to where its ticks were dealt with

    def deal(self, now, paused):
        """Yield the ticks that start a job, each with that: the earliest of a schedule first.

        Of those that were missed none, one, or all. Those of a paused job wait until it goes on,
        and are missed ones then.
        """
        for job, trigger in self.crons:
            cron = (job.id, trigger.schedule.text)
            after = self.standing.setdefault(cron, now)
            ticks = list(between(trigger.schedule, after, now))
            if job.id in paused or (after <= now and not ticks):
                continue
            due = started_by(ticks, trigger.missed, now)
            yield from ((job, cron, at) for at in due)
            self.standing[cron] = due[-1] if due else now


def between(schedule, after, now):
    while (after := schedule.next(after)) <= now:
        yield after


def started_by(ticks, missed, now):
    """Return those of some ticks that start the job: a tick is missed from a minute on."""
    match missed:
        case "skip":
            return [at for at in ticks[-1:] if at > now - MINUTE]
        case "once":
            return ticks[-1:]
    return [at for at in ticks[-100:] if at > now - WEEK]

"""Cron schedules, as the reference reads them (crons.jsonl)."""

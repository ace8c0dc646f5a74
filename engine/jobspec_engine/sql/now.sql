-- The engine's time, which cron ticks go by.
select {schema}.now()

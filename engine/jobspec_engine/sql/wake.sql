-- Wake the workers that sleep. In a transaction of its own: inside that of a send it would take the
-- server's commits one by one.
select pg_notify(%(channel)s, '')

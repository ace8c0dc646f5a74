-- What keeps vacuum from removing dead rows of this database, or holds locks without doing anything:
-- sessions with an old transaction, prepared transactions and replication slots. `age` is null for a
-- slot, whose start nobody knows: then `transactions` says how far back it reaches.
select
    case state
        when 'idle in transaction' then 'idle' when 'idle in transaction (aborted)' then 'idle'
        else 'transaction'
    end,
    format('session %%s of %%s (%%s)', pid, usename, coalesce(nullif(application_name, ''), 'no name')),
    extract(epoch from clock_timestamp() - case when state like 'idle%%' then state_change else xact_start end),
    greatest(age(backend_xmin), age(backend_xid))
from pg_stat_activity
where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
    and backend_type = 'client backend'
union all
select 'prepared', format('prepared transaction %%s of %%s', gid, owner),
    extract(epoch from clock_timestamp() - prepared), age(transaction)
from pg_prepared_xacts
where database = current_database()
union all
select 'slot', format('replication slot %%s', slot_name), null, greatest(age(xmin), age(catalog_xmin))
from pg_replication_slots
where xmin is not null or catalog_xmin is not null

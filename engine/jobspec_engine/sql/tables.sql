-- The tables of a schema with their living and dead rows, by the server's statistics, and their indexes
-- that are not valid.
select
    tables.relname, tables.n_live_tup, tables.n_dead_tup,
    array(
        select index.relname::text
        from pg_index
        join pg_class as index on index.oid = indexrelid
        where indrelid = tables.relid and not (indisvalid and indisready and indislive)
        order by index.relname
    )
from pg_stat_user_tables as tables
where schemaname = %(schema)s
order by tables.relname

-- Tables and functions of the given names in one schema that another role than the given one owns, as
-- `alter` names them. Other kinds go with their table. No row: all are that role's. Locks nothing.
with made as (
    select relnamespace as namespace, relname as name, relowner as owner, 'table' as kind, '' as arguments
    from pg_catalog.pg_class
    where relkind in ('r', 'p')
    union all
    select
        pronamespace, proname, proowner, 'function',
        '(' || pg_catalog.pg_get_function_identity_arguments(oid) || ')'
    from pg_catalog.pg_proc
)
select pg_catalog.format('%%s %%I.%%I', kind, nspname, name) || arguments
from made
join pg_catalog.pg_namespace on pg_namespace.oid = namespace
where nspname = %(schema)s and name = any(%(names)s)
    and owner <> (select oid from pg_catalog.pg_roles where rolname = %(owner)s)

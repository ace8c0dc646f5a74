-- What migrating itself stands on: run once, before the first migration, under the migration lock.
create table {schema}.migration (
    version    integer     primary key check (version > 0),
    name       text        not null,
    digest     text        not null,  -- SHA-256 of the file, so that an edited migration is found out
    applied_at timestamptz not null default pg_catalog.now()
);

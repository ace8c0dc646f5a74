-- The body of a function is read by each session that calls it, as its own `standard_conforming_strings`
-- says. Where a role has that off, a backslash in quotes is an escape, and what looked into an event
-- failed. Here it is one for everybody.

-- As in 0007_readable_data.sql, but for that.
create or replace function {schema}.readable(data text) returns json
language plpgsql immutable parallel safe
as $$
begin
    if data !~* e'\\\\u(0000|d[89a-f])' then
        return data;
    end if;
    data := regexp_replace(
        data,
        e'(?<!\\\\)((?:\\\\\\\\)*)\\\\u(?:0000|d[89ab][0-9a-f]{2}(?!\\\\ud[c-f][0-9a-f]{2}))',
        e'\\1\\\\ufffd', 'gi'
    );
    return regexp_replace(
        data,
        e'(?<!(?<!\\\\)(?:\\\\\\\\)*\\\\ud[89ab][0-9a-f]{2})(?<!\\\\)((?:\\\\\\\\)*)\\\\ud[c-f][0-9a-f]{2}',
        e'\\1\\\\ufffd', 'gi'
    );
end
$$;

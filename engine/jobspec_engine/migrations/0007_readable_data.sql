-- Half of a surrogate pair in the data of an event, which JSON may have and Postgres keeps, failed whatever
-- looked into that event for a step that waits.

-- JSON that Postgres can look into: an escape of U+0000 or of half a surrogate pair, which it can't read, is
-- one of U+FFFD. A backslash that is itself escaped begins no escape.
create function {schema}.readable(data text) returns json
language plpgsql immutable parallel safe
as $$
begin
    if data !~* '\\u(0000|d[89a-f])' then
        return data;
    end if;
    data := regexp_replace(
        data, '(?<!\\)((?:\\\\)*)\\u(?:0000|d[89ab][0-9a-f]{2}(?!\\ud[c-f][0-9a-f]{2}))', '\1\\ufffd', 'gi'
    );
    return regexp_replace(
        data, '(?<!(?<!\\)(?:\\\\)*\\ud[89ab][0-9a-f]{2})(?<!\\)((?:\\\\)*)\\ud[c-f][0-9a-f]{2}', '\1\\ufffd', 'gi'
    );
end
$$;

create or replace function {schema}.event_digest(data text, paths text) returns bytea
language plpgsql immutable parallel safe
as $$
declare
    readable constant json := {schema}.readable(data);
begin
    return sha256(convert_to(array(
        select coalesce((readable #> string_to_array(path, '.'))::text, '')
        from json_array_elements_text(paths::json) with ordinality as wanted (path, position)
        order by position
    )::text, 'UTF8'));
end
$$;

create or replace function {schema}.event_matches(data text, match json) returns boolean
language plpgsql stable parallel safe
as $$
declare
    readable json;
begin
    if match is null then
        return true;
    end if;
    readable := {schema}.readable(data);
    return not exists (
        select
        from json_array_elements(match) as wanted
        where (readable #> string_to_array(wanted ->> 0, '.'))::text is distinct from (wanted -> 1)::text
    );
end
$$;

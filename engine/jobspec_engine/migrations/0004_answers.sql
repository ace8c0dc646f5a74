-- What a step that waits for an event needs: to be found by the event without a look at all that wait for
-- one of its name, and to look back for an answer that came before it waited.
--
-- One short transaction behind its strongest locks, as 0002 is.
lock table {schema}.job_event, {schema}.job_step in access exclusive mode;

-- From when on an event counts for the wait that comes next: when the step was begun; of a wait, when its
-- event came, or its time was up. Null: when it was recorded.
alter table {schema}.job_step add column answers_from timestamptz;

-- The event that this one stands for: that of a run which drifted, and goes on in another one.
alter table {schema}.job_event add column stands_for text;

-- The paths that a match goes by, as a JSON array in their order. Not in SQL, and so never inlined: an
-- index and a query must have the same.
create function {schema}.match_paths(match json) returns text
language plpgsql immutable parallel safe
as $$
begin
    return coalesce((select json_agg(wanted ->> 0 order by wanted ->> 0) from json_array_elements(match) as wanted), '[]');
end
$$;

-- The values that a match asks for, in the order of their paths.
create function {schema}.match_digest(match json) returns bytea
language plpgsql immutable parallel safe
as $$
begin
    return sha256(convert_to(array(
        select (wanted -> 1)::text from json_array_elements(match) as wanted order by wanted ->> 0
    )::text, 'UTF8'));
end
$$;

-- The values that an event has at these paths, the digest of which is that of the matches it fits.
create function {schema}.event_digest(data text, paths text) returns bytea
language plpgsql immutable parallel safe
as $$
begin
    data := regexp_replace(data, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g');
    return sha256(convert_to(array(
        select coalesce((data::json #> string_to_array(path, '.'))::text, '')
        from json_array_elements_text(paths::json) with ordinality as wanted (path, position)
        order by position
    )::text, 'UTF8'));
end
$$;

-- What a send reads: who waits for its event.
create index job_step_awaited
    on {schema}.job_step (event_name, {schema}.match_paths(event_match), {schema}.match_digest(event_match))
    where state = 'waiting' and kind = 'wait';

drop index {schema}.job_step_awaiting;

-- How a guest's call reaches functions with the owner's rights, and for which role.
--
-- A function with its owner's rights cannot see by which role it is called: inside,
-- current_user is the owner, and session_user is the role that logged in, which in a
-- maintenance command (autovacuum's ANALYZE, REINDEX) or in another role's SECURITY
-- DEFINER function is not the role that the code runs as. A column's DEFAULT is
-- evaluated as that role. So a call is an INSERT into a view, which stores nothing: its
-- INSTEAD OF trigger, with the owner's rights, finds current_user in a column that its
-- DEFAULT alone may fill, because INSERT is granted on the others only. RETURNING shows
-- the trigger's values.
--
-- A session's calls are done only as the role that it goes by. Code that runs as
-- another one is refused, whatever its privileges are: so the checks behind this may
-- ask the session (tique.guest()), and what belongs to a session (an epoch's lock, the
-- right to end it) is never made for another role.
--
-- No guest may call the functions behind, nor use the triggers' functions elsewhere
-- (CREATE TRIGGER takes EXECUTE); TG_RELID is checked all the same.

-- Makes tique.guest_…, which any role may call, of tique.inner_…. A limit is for calls
-- that others wait for until the transaction ends: it has to end, whatever the caller
-- does next.
CREATE FUNCTION tique.guest_opens(inner_function regprocedure, is_limited boolean)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    name text;
    result text;
    fields text;
    given text;
    places text;
    asked text;
    taken text;
    shown text;
    filled text;
BEGIN
    SELECT 'guest_' || substr(p.proname, 7), format_type(p.prorettype, NULL)
    INTO name, result FROM pg_proc AS p WHERE p.oid = inner_function;
    SELECT string_agg(format(', NULL::%s AS %I', format_type(a.type, NULL), a.name), ''),
        string_agg(quote_ident(a.name), ', ') FILTER (WHERE a.mode = 'i'),
        string_agg('$' || a.place, ', ') FILTER (WHERE a.mode = 'i'),
        string_agg(format('NEW.%I', a.name), ', ') FILTER (WHERE a.mode = 'i'),
        string_agg(format('f.%I', a.name), ', ') FILTER (WHERE a.mode = 'o'),
        string_agg(format('c.%I', a.name), ', ') FILTER (WHERE a.mode = 'o'),
        string_agg(format('NEW.%I', a.name), ', ') FILTER (WHERE a.mode = 'o')
    INTO fields, given, places, asked, taken, shown, filled
    FROM (
        SELECT a.type, a.name, a.place, coalesce(p.proargmodes[a.place], 'i') AS mode
        FROM pg_proc AS p CROSS JOIN LATERAL unnest(
            coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargnames
        ) WITH ORDINALITY AS a(type, name, place)
        WHERE p.oid = inner_function ORDER BY a.place
    ) AS a;
    IF taken IS NULL THEN
        fields := format('%s, NULL::%s AS result', fields, nullif(result, 'void'));
        taken := 'f.f';
        shown := 'c.result';
        filled := 'NEW.result';
    END IF;
    EXECUTE format('CREATE VIEW tique.%I AS SELECT NULL::name AS guest%s WHERE false',
        name || '_call', replace(fields, 'NULL:: AS', 'NULL::text AS'));
    EXECUTE format('ALTER VIEW tique.%I ALTER guest SET DEFAULT current_user',
        name || '_call');
    EXECUTE format($body$
        CREATE FUNCTION tique.%1$I() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
        SET standard_conforming_strings = on SET transform_null_equals = off
        AS $trigger$
        BEGIN
            IF NEW.guest IS DISTINCT FROM tique.guest()
                OR TG_RELID <> 'tique.%2$I'::regclass
            THEN
                PERFORM tique.guest_refuse(format('this runs as role %%s, and the session '
                    'as %%s: call it in a session of its own', NEW.guest, tique.guest()));
            END IF;
            %6$s
            SELECT %3$s INTO %4$s FROM tique.%5$s AS f;
            RETURN NEW;
        END
        $trigger$
        $body$, name || '_called', name || '_call', taken, filled,
        format('%I(%s)', 'inner_' || substr(name, 7), asked),
        CASE WHEN is_limited THEN 'PERFORM tique.limit_transaction({limit});' END);
    EXECUTE format('CREATE TRIGGER called INSTEAD OF INSERT ON tique.%I '
        'FOR EACH ROW EXECUTE FUNCTION tique.%I()', name || '_call', name || '_called');
    EXECUTE format($body$
        CREATE FUNCTION tique.%1$I(%2$s) RETURNS %3$s
        LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
        AS $call$
        %4$s
        BEGIN
            INSERT INTO tique.%5$I AS c %6$s RETURNING %7$s INTO %8$s;
            %9$s
        END
        $call$
        $body$, name, pg_get_function_arguments(inner_function),
        pg_get_function_result(inner_function),
        CASE WHEN shown = 'c.result'
            THEN format('DECLARE result %s;', replace(result, 'void', 'text')) END,
        name || '_call',
        CASE WHEN given IS NULL THEN 'DEFAULT VALUES'
            ELSE format('(%s) VALUES (%s)', given, places) END,
        shown, replace(shown, 'c.', ''),
        CASE WHEN shown = 'c.result' AND result <> 'void' THEN 'RETURN result;' END);
END
$$;

SELECT tique.guest_opens('tique.inner_join(bigint)', true),
    tique.guest_opens('tique.inner_introduce(bigint, integer, integer)', true),
    tique.guest_opens('tique.inner_tend()', true),
    tique.guest_opens('tique.inner_follow(bigint, bigint)', false),
    tique.guest_opens('tique.inner_logged(bigint)', false),
    tique.guest_opens(
        'tique.inner_append(bigint, bigint, bytea, integer[], bigint[], text)', true),
    tique.guest_opens('tique.inner_barrier(bigint)', true),
    tique.guest_opens('tique.inner_log_bulk(bigint, bigint, bigint, text)', false),
    tique.guest_opens(
        'tique.inner_append_staged(bigint, bigint, bigint, text[])', false);

CREATE FUNCTION tique.guest_log(
    after bigint, OUT cts bigint, OUT txid bigint, OUT commits text
) RETURNS SETOF record
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT u.* FROM tique.guest_logged(after) AS l
    CROSS JOIN LATERAL unnest(l.stamps, l.txids, l.entries) AS u
$$;

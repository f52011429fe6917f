-- Versions that count for nothing go from all shards in a transaction of their own
-- (moves.py): what guest_clear (guests_sql/clients.sql) deletes together with the
-- coordinator's rows is the coordinator's own.
CREATE OR REPLACE FUNCTION tique.guest_clear(stamps bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    id bigint;
BEGIN
    FOR id IN SELECT t.id FROM tique."tables" AS t WHERE NOT EXISTS (
        SELECT FROM pg_dist_partition AS p
        WHERE p.logicalrelid = tique.guest_cache(t.id)::regclass
    ) LOOP
        EXECUTE format('DELETE FROM %s WHERE _cts = ANY ($1)', tique.guest_cache(id))
        USING stamps;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION tique.guest_clear_shards(stamps bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    id bigint;
BEGIN
    FOR id IN SELECT t.id FROM tique."tables" AS t WHERE EXISTS (
        SELECT FROM pg_dist_partition AS p
        WHERE p.logicalrelid = tique.guest_cache(t.id)::regclass
    ) LOOP
        EXECUTE format('DELETE FROM %s WHERE _cts = ANY ($1)', tique.guest_cache(id))
        USING stamps;
    END LOOP;
END
$$;

-- Guests. What they write is checked on the coordinator, in a table like the cache table
-- without a row that is committed; from there it goes to the shards.

CREATE OR REPLACE FUNCTION tique.guest_target(id bigint) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(to_regclass('tique.tique_shape_' || id)::text, tique.guest_cache(id))
$$;

CREATE OR REPLACE FUNCTION tique.guest_spread(id bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    shape text := to_regclass('tique.tique_shape_' || id)::text;
BEGIN
    IF shape IS NOT NULL THEN
        EXECUTE format('INSERT INTO %s SELECT * FROM %s', tique.guest_cache(id), shape);
        EXECUTE format('DELETE FROM %s', shape);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION tique.guest_expect_whole(id bigint) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF to_regclass('tique.tique_shape_' || id) IS NOT NULL THEN
        PERFORM tique.guest_refuse(format('table %s is distributed: a process of the role '
            'that owns schema tique folds it', tique.guest_place(id)));
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION tique.guest_stored(place regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce((
        SELECT min(format('(SELECT * FROM ONLY %s WHERE %s = ANY (ARRAY(SELECT '
            'CAST(_w->>%s AS %s) FROM unnest($2) AS _u CROSS JOIN LATERAL '
            'json_array_elements(_u) AS _w)))', place, c.name, c.number, c.type))
        FROM tique.guest_columns(place) AS c JOIN pg_dist_partition AS p
            ON p.logicalrelid = place AND p.partmethod = 'h'
        WHERE NOT c.is_own
            AND c.name = quote_ident(column_to_column_name(p.logicalrelid, p.partkey))
    ), 'ONLY ' || place::text)
$$;

-- A guest's drain, in the steps of moves.py. A guest may leave any of them out, or do it
-- when it likes: so rows are written that the log has and the cache table has not, and the
-- last step looks for them on all shards. What a guest leaves an owner's process takes back.
CREATE OR REPLACE FUNCTION tique.guest_move(client bigint, id bigint, until bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    last bigint := least(until, tique.sts());
    filled bigint;
    token bigint := floor(random() * 2 ^ 52);
BEGIN
    PERFORM tique.limit_transaction({limit});
    PERFORM tique.guest_sees_all();
    PERFORM tique.sts_for(client);
    SELECT greatest(t.drained, t.folded) INTO filled FROM tique."tables" AS t
    WHERE t.id = guest_move.id FOR UPDATE;
    IF filled IS NULL OR last <= filled THEN
        RETURN 0;
    ELSIF EXISTS (SELECT FROM tique.moves AS m WHERE m.id = guest_move.id) THEN
        RETURN -1;
    END IF;
    INSERT INTO tique.moves VALUES (id, token, client, last, false);
    RETURN token;
END
$$;

CREATE OR REPLACE FUNCTION tique.guest_move_rows(id bigint, token bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on SET transform_null_equals = off SET array_nulls = on
SET DateStyle = 'ISO, YMD' SET IntervalStyle = 'postgres' SET TimeZone = 'UTC'
AS $$
DECLARE
    filled bigint;
    last bigint;
    stamps bigint[];
    versions json[];
    is_there boolean;
BEGIN
    PERFORM tique.guest_sees_all();
    SELECT greatest(t.drained, t.folded) INTO filled FROM tique."tables" AS t
    WHERE t.id = guest_move_rows.id FOR UPDATE;
    SELECT m.until INTO last FROM tique.moves AS m
    WHERE m.id = guest_move_rows.id AND m.token = guest_move_rows.token AND NOT m.folds;
    IF last IS NULL THEN
        RETURN;
    END IF;
    SELECT e.stamps, e.versions INTO stamps, versions
    FROM tique.guest_entries(id, filled, last) AS e;
    IF stamps IS NULL THEN
        RETURN;
    END IF;
    EXECUTE format('SELECT count(*) > 0 FROM %s WHERE _cts = ANY ($1)',
        tique.guest_cache(id)) INTO is_there USING stamps;
    IF is_there THEN
        PERFORM tique.guest_refuse('these versions are there');
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM tique.guest_fill(id, stamps, versions);
    PERFORM tique.guest_spread(id);
    PERFORM tique.limit_transaction({limit});
END
$$;

CREATE OR REPLACE FUNCTION tique.guest_moved(id bigint, token bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    filled bigint;
    last bigint;
    stamps bigint[];
    versions json[];
    found bigint;
BEGIN
    PERFORM tique.limit_transaction({limit});
    PERFORM tique.guest_sees_all();
    SELECT greatest(t.drained, t.folded) INTO filled FROM tique."tables" AS t
    WHERE t.id = guest_moved.id FOR UPDATE;
    SELECT m.until INTO last FROM tique.moves AS m
    WHERE m.id = guest_moved.id AND m.token = guest_moved.token AND NOT m.folds;
    IF last IS NULL THEN
        RETURN false;
    END IF;
    SELECT e.stamps, e.versions INTO stamps, versions
    FROM tique.guest_entries(id, filled, last) AS e;
    EXECUTE format('SELECT count(*) FROM %s WHERE _cts = ANY ($1)', tique.guest_cache(id))
    INTO found USING coalesce(stamps, '{}');
    IF found < (
        SELECT coalesce(sum(json_array_length(v.v)), 0)
        FROM unnest(coalesce(versions, '{}')) AS v(v)
    ) THEN
        RETURN false;
    END IF;
    UPDATE tique."tables" AS t SET drained = last WHERE t.id = guest_moved.id;
    DELETE FROM tique.moves AS m WHERE m.id = guest_moved.id;
    RETURN true;
END
$$;

DO $$
DECLARE
    made regprocedure;
BEGIN
    FOR made IN SELECT p.oid FROM pg_proc AS p
        WHERE p.pronamespace = 'tique'::regnamespace AND p.proname IN ('guest_clear_shards',
            'guest_move', 'guest_move_rows', 'guest_moved')
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made);
    END LOOP;
END
$$;
GRANT EXECUTE ON FUNCTION tique.guest_move(bigint, bigint, bigint),
    tique.guest_move_rows(bigint, bigint), tique.guest_moved(bigint, bigint) TO PUBLIC;
GRANT SELECT ON tique.moves TO PUBLIC;
-- Their steps are more than one transaction (moves.py).
REVOKE ALL ON FUNCTION tique.guest_disown(), tique.guest_fence(bigint[]),
    tique.guest_sweep(bigint[]), tique.guest_forget() FROM PUBLIC;

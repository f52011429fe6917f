-- Moving versions. Any role may move them: no setting of its session decides how text
-- is read.

-- Lets a failure name its table and nothing of its rows: the role that moves them need
-- not be allowed to read them.
CREATE FUNCTION tique.guest_fails(id bigint, state text, named text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = format(
        'versions of table %s cannot be moved: SQLSTATE %s%s', tique.guest_place(id), state,
        ' by ' || nullif(named, ''));
END
$$;

-- Versions of no stored row, though they leave columns to it, are set aside.
CREATE FUNCTION tique.guest_fill_all(id bigint, stamps bigint[], versions json[])
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    filled bigint;
BEGIN
    EXECUTE tique.guest_filling(id) USING stamps, versions;
    GET DIAGNOSTICS filled = ROW_COUNT;
    IF filled < (SELECT sum(json_array_length(v.v)) FROM unnest(versions) AS v(v)) THEN
        EXECUTE format('INSERT INTO tique.aside SELECT _e._cts, $1, $2 '
            'FROM unnest($3, $4) AS _e(_cts, _v) WHERE json_array_length(_e._v) > '
            '(SELECT count(*) FROM %s AS _c WHERE _c._cts = _e._cts) '
            'ON CONFLICT DO NOTHING', tique.guest_target(id))
        USING id, '{no_row}', stamps, versions;
    END IF;
END
$$;

-- Parts of the log that cannot be read are set aside, entry by entry.
CREATE FUNCTION tique.guest_fill(id bigint, stamps bigint[], versions json[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    named text;
BEGIN
    BEGIN
        PERFORM tique.guest_fill_all(id, stamps, versions);
        RETURN;
    EXCEPTION WHEN data_exception THEN
        NULL;
    END;
    FOR i IN 1 .. cardinality(stamps) LOOP
        BEGIN
            PERFORM tique.guest_fill_all(id, stamps[i : i], versions[i : i]);
        EXCEPTION WHEN data_exception THEN
            INSERT INTO tique.aside VALUES (stamps[i], id, 'SQLSTATE ' || SQLSTATE)
            ON CONFLICT DO NOTHING;
        END;
    END LOOP;
EXCEPTION WHEN integrity_constraint_violation OR program_limit_exceeded THEN
    GET STACKED DIAGNOSTICS named = CONSTRAINT_NAME;
    PERFORM tique.guest_fails(id, SQLSTATE, named);
END
$$;

-- What the log has of a table, later than a timestamp and not later than another one.
CREATE FUNCTION tique.guest_entries(
    id bigint, after bigint, until bigint, OUT stamps bigint[], OUT versions json[]
)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT array_agg(l.cts), array_agg(l.commits::json->0->(id::text)) FROM tique.log AS l
    WHERE l.cts > after AND l.cts <= until AND strpos(l.commits, format('"%s":[', id)) > 0
        AND l.commits::json->0->(id::text) IS NOT NULL
        AND l.cts NOT IN (SELECT f.cts FROM tique.fences AS f)
$$;

-- Moves versions from the log to the cache table, up to a timestamp that sts covers.
CREATE FUNCTION tique.guest_drains(id bigint, until bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on SET transform_null_equals = off SET array_nulls = on
SET DateStyle = 'ISO, YMD' SET IntervalStyle = 'postgres' SET TimeZone = 'UTC'
AS $$
DECLARE
    -- Before the log is looked at, where all that it covers is then.
    last bigint := least(until, tique.sts());
    filled bigint;
    stamps bigint[];
    versions json[];
BEGIN
    PERFORM tique.guest_sees_all();
    PERFORM tique.guest_place(id);
    PERFORM tique.guest_expect_whole(id);
    SELECT greatest(t.drained, t.folded) INTO filled FROM tique."tables" AS t
    WHERE t.id = guest_drains.id FOR UPDATE;
    IF last <= filled THEN
        RETURN;
    END IF;
    -- As it may be done again, COMMIT need not wait for the disk (folding.py).
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT e.stamps, e.versions INTO stamps, versions
    FROM tique.guest_entries(id, filled, last) AS e;
    IF stamps IS NOT NULL THEN
        PERFORM tique.guest_fill(id, stamps, versions);
    END IF;
    UPDATE tique."tables" AS t SET drained = last WHERE t.id = guest_drains.id;
END
$$;

-- The table's row is locked until the transaction ends, which has to be soon.
CREATE FUNCTION tique.guest_drain(id bigint, until bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM tique.guest_drains(id, until);
    PERFORM tique.limit_transaction({limit});
END
$$;

-- Writes what a fold replaces to the table's history, if it has one, before that
-- (tique_backends/catalog/histories.py, and forms.py, whose query this is).
CREATE FUNCTION tique.guest_keep_images(id bigint, until bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    place text := tique.guest_place(id)::text;
    cache text := tique.guest_cache(id);
    history text := format('tique.tique_history_%s', id);
    columns text;
    image text;
    key text;
    same text;
BEGIN
    IF NOT EXISTS (SELECT FROM tique.history AS h WHERE h.id = guest_keep_images.id) THEN
        RETURN;
    END IF;
    SELECT string_agg(c.name, ', ' ORDER BY c.number),
        string_agg(CASE WHEN c.is_key THEN format('coalesce(_s.%1$s, _e.%1$s)', c.name)
            ELSE '_s.' || c.name END, ', ' ORDER BY c.number),
        string_agg(c.name, ', ') FILTER (WHERE c.is_key),
        string_agg(format('_e.%1$s = _s.%1$s', c.name), ' AND ') FILTER (WHERE c.is_key)
    INTO columns, image, key, same
    FROM (
        SELECT DISTINCT d.number, d.name, d.is_key
        FROM tique.guest_columns(place::regclass) AS d
    ) AS c;
    IF key IS NULL THEN
        EXECUTE format('INSERT INTO %1$s SELECT %2$s, NULL, _cts, _deleted FROM %3$s '
            'WHERE _cts <= $1 ORDER BY _cts', history, columns, cache) USING until;
        RETURN;
    END IF;
    EXECUTE format('INSERT INTO %1$s SELECT * FROM ('
        'SELECT %4$s, (SELECT coalesce(max(_until), 0) FROM %1$s AS _s WHERE %6$s), '
        '_e._until, _s.ctid IS NOT NULL FROM '
        '(SELECT %5$s, min(_cts) AS _until FROM %3$s WHERE _cts <= $1 GROUP BY %5$s) AS _e '
        'LEFT JOIN ONLY %7$s AS _s ON %6$s '
        'UNION ALL SELECT * FROM (SELECT %2$s, _cts, lead(_cts) OVER (PARTITION BY %5$s '
        'ORDER BY _cts) AS _until, NOT _deleted FROM %3$s WHERE _cts <= $1) AS _r '
        'WHERE _until IS NOT NULL) AS _i ORDER BY _until',
        history, columns, cache, image, key, same, place) USING until;
END
$$;

-- Folds versions from the cache table to storage, up to lambda; their number. NULL if
-- another process has folded the table.
CREATE FUNCTION tique.guest_fold(id bigint, until bigint, since bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on SET transform_null_equals = off SET array_nulls = on
SET DateStyle = 'ISO, YMD' SET IntervalStyle = 'postgres' SET TimeZone = 'UTC'
AS $$
DECLARE
    last bigint := least(until, tique."lambda"());
    place text := tique.guest_place(id)::text;
    cache text := tique.guest_cache(id);
    columns text;
    same text;
    distinct_same text;
    image text;
    named text;
    folded bigint;
BEGIN
    PERFORM tique.guest_drains(id, last);
    PERFORM tique.guest_expect_own(place::regclass);
    UPDATE tique."tables" AS t SET folded = last
    WHERE t.id = guest_fold.id AND t.folded <= last
        AND t.folded = coalesce(since, t.folded);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT string_agg(c.name, ', ' ORDER BY c.number),
        string_agg(format('_s.%1$s = _v.%1$s', c.name), ' AND ') FILTER (WHERE c.is_key),
        string_agg(format('_s.%1$s IS NOT DISTINCT FROM _v.%1$s', c.name), ' AND ')
    INTO columns, same, distinct_same
    FROM (
        SELECT DISTINCT d.number, d.name, d.is_key
        FROM tique.guest_columns(place::regclass) AS d
    ) AS c;
    BEGIN
        PERFORM tique.guest_keep_images(id, last);
        IF same IS NOT NULL THEN
            EXECUTE format('DELETE FROM ONLY %s AS _s WHERE EXISTS (SELECT FROM %s AS _v '
                'WHERE _v._cts <= $1 AND %s)', place, cache, same) USING last;
            EXECUTE format('INSERT INTO %1$s (%2$s) OVERRIDING SYSTEM VALUE '
                'SELECT %2$s FROM %3$s AS _s '
                'WHERE _s._cts <= $1 AND NOT _s._deleted AND NOT EXISTS (SELECT FROM %3$s '
                'AS _v WHERE %4$s AND _v._cts > _s._cts AND _v._cts <= $1)',
                place, columns, cache, same) USING last;
        ELSE
            -- Rows that are equal and not the same differ in their image (names.py), by
            -- which they are joined, too: of IS NOT DISTINCT FROM PostgreSQL makes a loop
            -- over all pairs.
            image := format('CAST(ROW(%s) AS text)', columns);
            -- A copy per tombstone goes; rows inserted and deleted since cancel out.
            EXECUTE format('DELETE FROM ONLY %1$s WHERE ctid = ANY (ARRAY(SELECT _s._place FROM '
                '(SELECT *, ctid AS _place, %5$s AS _image, '
                'row_number() OVER (PARTITION BY %2$s, %5$s) AS _copy FROM ONLY %1$s) AS _s '
                'JOIN (SELECT %2$s, _image, count(*) AS _copies FROM '
                '(SELECT %2$s, %5$s AS _image FROM %3$s WHERE _cts <= $1 AND _deleted '
                'EXCEPT ALL '
                'SELECT %2$s, %5$s FROM %3$s WHERE _cts <= $1 AND NOT _deleted) AS _e '
                'GROUP BY %2$s, _image) AS _v ON %4$s AND _s._image = _v._image '
                'WHERE _s._copy <= _v._copies))',
                place, columns, cache, distinct_same, image) USING last;
            EXECUTE format('INSERT INTO %1$s (%2$s) OVERRIDING SYSTEM VALUE '
                'SELECT %2$s FROM (SELECT %2$s, %4$s AS _image FROM %3$s '
                'WHERE _cts <= $1 AND NOT _deleted EXCEPT ALL '
                'SELECT %2$s, %4$s FROM %3$s WHERE _cts <= $1 AND _deleted) AS _e',
                place, columns, cache, image)
            USING last;
        END IF;
    EXCEPTION WHEN data_exception OR integrity_constraint_violation
        OR program_limit_exceeded
    THEN
        GET STACKED DIAGNOSTICS named = CONSTRAINT_NAME;
        PERFORM tique.guest_fails(id, SQLSTATE, named);
    END;
    EXECUTE format('DELETE FROM %s WHERE _cts <= $1', cache) USING last;
    GET DIAGNOSTICS folded = ROW_COUNT;
    PERFORM tique.limit_transaction({limit});
    RETURN folded;
END
$$;

-- Drops the entries that all clients, and the replicas (tique_backends/catalog/slots.py), have
-- taken in, up to the first one with versions that are not in storage (AFTER_OUTCOMES in tique_backends/catalog/histories.py); outcomes an hour later at the earliest.
CREATE FUNCTION tique.guest_prune(retention double precision) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    last bigint := tique."lambda"();
    -- All of a history's first term, and an hour.
    oldest bigint := (extract(epoch FROM clock_timestamp()) - greatest(retention, 3600,
        (SELECT max(extract(epoch FROM split_part(h.retention, ';', 1)::interval))
        FROM tique.history AS h))) * 1000000;
BEGIN
    PERFORM tique.guest_sees_all();
    DELETE FROM tique.slots AS s WHERE s.expires < extract(epoch FROM now()) * 1000000;
    last := least(last, (SELECT min(s.cts) FROM tique.slots AS s));
    WITH gone AS (
        DELETE FROM tique.log AS l WHERE l.cts <= last AND l.cts < coalesce((
            SELECT min(n.cts) FROM tique.log AS n WHERE n.cts <= last AND EXISTS (
                SELECT FROM tique."tables" AS t WHERE t.folded < n.cts
                    AND (n.commits::json->0->(t.id::text) IS NOT NULL
                        OR n.commits::json->1->(t.id::text) IS NOT NULL)
            )
        ), last + 1) RETURNING l.cts, l.txid, l.committed_at
    )
    INSERT INTO tique.outcomes SELECT g.* FROM gone AS g
    WHERE g.cts NOT IN (SELECT f.cts FROM tique.fences AS f);
    WITH old AS (
        DELETE FROM tique.outcomes AS o WHERE o.committed_at < oldest
            AND o.cts < (SELECT max(n.cts) FROM tique.outcomes AS n)
        RETURNING o.cts, o.txid, o.committed_at
    ), kept AS (
        {keeping_moments}
    )
    UPDATE tique.format AS f SET forgotten = n.txid
    FROM (SELECT max(old.txid) AS txid FROM old) AS n WHERE f.forgotten < n.txid;
    DELETE FROM tique.barriers AS b WHERE b.cts <= tique.sts()
        AND b.cts NOT IN (SELECT f.cts FROM tique.fences AS f);
END
$$;

-- Commits.

CREATE FUNCTION tique.inner_append(
    client bigint, after bigint, keys bytea, counts integer[], txids bigint[],
    entries text, OUT stamps bigint[], OUT sts bigint
)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- What is too long is not looked at: that would take long, too.
    entry text[] := CASE WHEN octet_length(entries) <= 33554432::bigint * cardinality(txids)
        THEN string_to_array(entries, chr(31)) END;
BEGIN
    IF (
        cardinality(entry) = cardinality(txids) AND cardinality(counts) = cardinality(txids)
        AND array_ndims(txids) = 1 AND array_lower(txids, 1) = 1
        AND array_ndims(counts) = 1 AND array_lower(counts, 1) = 1
        AND array_position(txids, NULL) IS NULL AND 0 <= ALL (counts)
        AND (SELECT sum(c.c) * 16 FROM unnest(counts) AS c) = length(keys)
    ) IS NOT TRUE THEN
        PERFORM tique.guest_refuse('these are no commits');
    END IF;
    FOR i IN 1 .. cardinality(txids) LOOP
        PERFORM tique.guest_enters(client, txids[i], entry[i]);
    END LOOP;
    SELECT a.stamps, a.sts INTO stamps, sts
    FROM tique.append(client, after, keys, counts, txids, entries) AS a;
END
$$;

CREATE FUNCTION tique.inner_barrier(client bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    taken bigint;
BEGIN
    -- All commits wait for it: a role that may write no table has no use for one.
    PERFORM FROM tique."tables" AS t WHERE tique.guest_may(
        to_regclass(format('%I.%I', t.schema_name, t.table_name)),
        'INSERT, UPDATE, DELETE'
    );
    IF NOT FOUND THEN
        PERFORM tique.guest_refuse('there is no table that the role may write');
    END IF;
    -- Each has to be fenced if its client goes, and every reader is told of the fences.
    IF (SELECT count(*) FROM tique.barriers AS b WHERE b.cts > tique.sts())
        + (SELECT count(*) FROM tique.fences) >= 1024
    THEN
        RAISE EXCEPTION USING ERRCODE = '53400',
            MESSAGE = 'too many commits in bulk were begun and given up',
            HINT = 'Try again when no transaction runs any more that is older.';
    END IF;
    IF EXISTS (
        SELECT FROM tique.fences AS f JOIN tique.barriers AS b USING (cts)
        WHERE b.role = tique.guest()
    ) THEN
        RAISE EXCEPTION USING ERRCODE = '53400',
            MESSAGE = 'a commit in bulk of this role was begun and given up, or took too long',
            HINT = 'Try again when no transaction runs any more that is older.';
    END IF;
    taken := tique.next_cts(client, {limit});
    -- A barrier of an earlier life of the server may have had the number.
    INSERT INTO tique.barriers VALUES (taken, client, tique.guest())
    ON CONFLICT (cts) DO UPDATE SET client = excluded.client, role = excluded.role;
    RETURN taken;
END
$$;

-- A guest's timestamp is in doubt when {limit} ms have passed since it was taken: all commits
-- wait for it, and a guest is not trusted to finish soon, however long its lease is. Its
-- client stays as it is, since the driver goes by its lease when it answers reads from
-- memory (P1, P7). So the driver asks this in the transaction that it is about to commit,
-- under the lock that a fencer waits for: rows committed after a refusal would belong
-- to no transaction, and rows committed after a consent are there to be cleared if the
-- timestamp is fenced before it is finished; then tique.finish refuses.
CREATE FUNCTION tique.guest_in_time(client bigint, stamp bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT tique.holds(client, stamp) THEN
        RAISE EXCEPTION USING ERRCODE = 'TQ004', MESSAGE = 'the commit in bulk took too long';
    END IF;
END
$$;

CREATE FUNCTION tique.guest_holds(client bigint, stamp bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- So that a process that sweeps up behind a fence waits for this transaction.
    PERFORM pg_current_xact_id();
    IF stamp > tique.sts() AND NOT EXISTS (
        SELECT FROM tique.barriers AS b
        WHERE b.cts = stamp AND b.client = guest_holds.client
    ) THEN
        PERFORM tique.guest_refuse('this is no timestamp that the client has to finish');
    END IF;
    PERFORM tique.guest_in_time(client, stamp);
END
$$;

CREATE FUNCTION tique.inner_log_bulk(
    client bigint, cts bigint, txid bigint, entry text
) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM tique.guest_holds(client, cts);
    PERFORM tique.guest_enters(client, txid, entry);
    INSERT INTO tique.log VALUES
        (cts, txid, extract(epoch FROM clock_timestamp()) * 1000000, entry);
END
$$;

-- Rows that the caller has staged, as the texts of rows of the cache table: its staging
-- table is its own, and nothing here looks at that. Texts are read by input functions, which
-- no cast of another role's replaces.
CREATE FUNCTION tique.inner_append_staged(
    client bigint, id bigint, cts bigint, versions text[]
) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp
SET array_nulls = on SET xmloption = content
AS $$
DECLARE
    place regclass := tique.guest_place(id);
    filling text;
    written bigint;
    deleted bigint;
BEGIN
    PERFORM tique.guest_holds(client, cts);
    -- Before it locks the table.
    PERFORM tique.guest_writes(id, 0, 0);
    PERFORM tique.guest_expect_own(place);
    SELECT format('INSERT INTO %3$s SELECT %2$s, $1[1], _n._deleted '
        'FROM unnest(CAST($2 AS %1$s[])) AS _n', tique.guest_cache(id),
        string_agg('_n.' || c.name, ', ' ORDER BY c.number), tique.guest_target(id))
    INTO filling
    FROM (
        SELECT DISTINCT d.number, d.name FROM tique.guest_columns(place) AS d
    ) AS c;
    SELECT t.written, t.deleted INTO written, deleted
    FROM tique.guest_caches(id, filling, cts, versions) AS t;
    PERFORM tique.guest_writes(id, written, deleted);
    PERFORM tique.guest_spread(id);
    RETURN written + deleted;
END
$$;

-- The same, of rows that are no texts yet: these are written as they are read above.
CREATE FUNCTION tique.guest_append_rows(
    client bigint, id bigint, cts bigint, versions anyarray
) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$ SELECT tique.guest_append_staged(client, id, cts, CAST(versions AS text[])) $$;

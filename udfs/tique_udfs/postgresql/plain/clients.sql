-- Clients and their snapshots.

CREATE FUNCTION tique.ready() RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN coalesce((
        SELECT s.started = pg_postmaster_start_time()
        FROM tique.sequencer_steps AS s ORDER BY s.cts DESC LIMIT 1
    ), false);
END
$$;

CREATE FUNCTION tique.recover(sts bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM tique.sequencer_lock('recover');
    IF sts NOT BETWEEN 0 AND 4611686018427387903 THEN
        PERFORM tique.sequencer_refuse('recover', 'unknown');
    ELSIF tique.ready() THEN
        PERFORM tique.sequencer_refuse('recover', 'in use');
    END IF;
    DELETE FROM tique.sequencer_steps;
    DELETE FROM tique.sequencer_barriers;
    DELETE FROM tique.sequencer_leases;
    DELETE FROM tique.sequencer_snapshots;
    DELETE FROM tique.sequencer_fences;
    PERFORM tique.sequencer_drop_lockers();
    DELETE FROM tique.sequencer_secret;
    INSERT INTO tique.sequencer_secret
    SELECT decode(string_agg(replace(gen_random_uuid()::text, '-', ''), ''), 'hex')
    FROM generate_series(1, 2);
    -- A clock is ahead of an earlier life's txids: fewer than one in a microsecond.
    PERFORM setval('tique.sequencer_txids', greatest(sts, 1000000 * extract(
        epoch FROM clock_timestamp() - timestamptz '2000-01-01 00:00:00+00'
    )::bigint));
    INSERT INTO tique.sequencer_steps VALUES (sts, sts, sts, sts, sts, 0,
        pg_current_xact_id(), pg_postmaster_start_time(), false, NULL);
END
$$;

-- A negative time counts as none.
CREATE FUNCTION tique.sequencer_deadline(milliseconds bigint) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN clock_timestamp()
        + greatest(0, least(milliseconds, 1000000000000)) * interval '1 ms';
END
$$;

CREATE FUNCTION tique.join_client(milliseconds bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN tique.sequencer_join(milliseconds, NULL); END $$;

CREATE FUNCTION tique.join_client(milliseconds bigint, role oid) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN tique.sequencer_join(milliseconds, role); END $$;

CREATE FUNCTION tique.sequencer_join(milliseconds bigint, role oid) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    expires timestamptz := tique.sequencer_deadline(milliseconds);
    digits text := replace(gen_random_uuid()::text, '-', '');
    -- Without the digits that say that it is a random UUID.
    client bigint := ('x' || left(digits, 12) || right(digits, 4))::bit(64)::bigint
        & 9223372036854775807;
BEGIN
    PERFORM tique.sequencer_enter('join_client', NULL);
    PERFORM tique.sequencer_expire('join_client');
    IF (SELECT count(*) >= 4096 FROM tique.sequencer_leases) THEN
        PERFORM tique.sequencer_refuse('join_client', 'clients');
    ELSIF (
        SELECT count(*) >= 1024 FROM tique.sequencer_leases AS l
        WHERE l.role = sequencer_join.role
    ) THEN
        PERFORM tique.sequencer_refuse('join_client', 'role');
    END IF;
    INSERT INTO tique.sequencer_leases VALUES (client, expires, role);
    RETURN client;
END
$$;

CREATE FUNCTION tique.renew_client(client bigint, milliseconds bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    renewed timestamptz := tique.sequencer_deadline(milliseconds);
    expires timestamptz;
BEGIN
    PERFORM tique.sequencer_state('renew_client');
    -- A transaction that renews it at this moment may be about to make it last longer.
    SELECT l.expires INTO expires FROM tique.sequencer_leases AS l
    WHERE l.client = renew_client.client FOR NO KEY UPDATE;
    IF expires > clock_timestamp() THEN
        UPDATE tique.sequencer_leases AS l SET expires = renewed
        WHERE l.client = renew_client.client;
    ELSE
        PERFORM tique.sequencer_refuse('renew_client', 'gone');
    END IF;
END
$$;

CREATE FUNCTION tique.leave_client(client bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- The row first: no session waits for it while it holds the mutex.
    PERFORM FROM tique.sequencer_leases AS l
    WHERE l.client = leave_client.client FOR UPDATE;
    PERFORM tique.sequencer_enter('leave_client', client);
    DELETE FROM tique.sequencer_leases AS l WHERE l.client = leave_client.client;
    DELETE FROM tique.sequencer_snapshots AS s WHERE s.client = leave_client.client;
    PERFORM tique.sequencer_drop_lockers();
    DELETE FROM tique.sequencer_barriers AS b
    WHERE b.client = leave_client.client AND b.is_overdue AND b.is_finished;
END
$$;

CREATE FUNCTION tique.begin_transaction(client bigint, OUT txid bigint, OUT sts bigint)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    state tique.sequencer_steps := tique.sequencer_enter('begin_transaction', client);
    is_full boolean;
    has_its_share boolean;
BEGIN
    SELECT count(*) >= 65536,
        count(*) FILTER (WHERE s.client = begin_transaction.client) >= 256
    INTO is_full, has_its_share FROM tique.sequencer_snapshots AS s;
    IF is_full THEN
        PERFORM tique.sequencer_refuse('begin_transaction', 'snapshots');
    ELSIF has_its_share THEN
        PERFORM tique.sequencer_refuse('begin_transaction', 'share');
    END IF;
    txid := nextval('tique.sequencer_txids');
    sts := state.settled;
    INSERT INTO tique.sequencer_snapshots VALUES (txid, client, sts);
END
$$;

CREATE FUNCTION tique.advance_transaction(client bigint, txid bigint, sts bigint)
RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    state tique.sequencer_steps := tique.sequencer_state('advance_transaction');
BEGIN
    IF NOT tique.sequencer_has(client) THEN
        PERFORM tique.sequencer_refuse('advance_transaction', 'gone');
    END IF;
    UPDATE tique.sequencer_snapshots AS s SET sts = advance_transaction.sts
    WHERE s.txid = advance_transaction.txid AND s.client = advance_transaction.client
        AND advance_transaction.sts BETWEEN s.sts AND state.settled;
    IF NOT FOUND THEN
        PERFORM tique.sequencer_refuse('advance_transaction', 'unknown');
    END IF;
END
$$;

CREATE FUNCTION tique.end_transaction(client bigint, txid bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    is_known boolean;
BEGIN
    PERFORM tique.sequencer_state('end_transaction');
    IF NOT tique.sequencer_has(client) THEN
        PERFORM tique.sequencer_refuse('end_transaction', 'gone');
    END IF;
    DELETE FROM tique.sequencer_snapshots AS s
    WHERE s.txid = end_transaction.txid AND s.client = end_transaction.client;
    IF NOT FOUND THEN
        SELECT t.is_called AND end_transaction.txid BETWEEN 1 AND t.last_value
            AND NOT EXISTS (
                SELECT FROM tique.sequencer_snapshots AS s
                WHERE s.txid = end_transaction.txid
            )
        INTO is_known FROM tique.sequencer_txids AS t;
        IF NOT is_known THEN
            PERFORM tique.sequencer_refuse('end_transaction', 'unknown');
        END IF;
    END IF;
END
$$;

CREATE FUNCTION tique.lambda() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    state tique.sequencer_steps := tique.sequencer_state('lambda');
BEGIN
    PERFORM tique.sequencer_expire('lambda');
    RETURN (
        SELECT least(min(s.sts), state.settled) FROM tique.sequencer_snapshots AS s
        JOIN tique.sequencer_leases AS l ON l.client = s.client
    );
END
$$;

CREATE FUNCTION tique.clients() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM tique.sequencer_state('clients');
    PERFORM tique.sequencer_expire('clients');
    RETURN (SELECT count(*) FROM tique.sequencer_leases);
END
$$;

CREATE FUNCTION tique.active() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM tique.sequencer_state('active');
    PERFORM tique.sequencer_expire('active');
    RETURN (
        SELECT count(*) FROM tique.sequencer_snapshots AS s
        JOIN tique.sequencer_leases AS l ON l.client = s.client
    );
END
$$;

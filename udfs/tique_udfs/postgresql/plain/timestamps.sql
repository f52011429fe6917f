-- Timestamps.

CREATE FUNCTION tique.sts_for(client bigint, OUT sts bigint, OUT fences bigint[])
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    is_fenced boolean;
    is_ready boolean;
    expires timestamptz;
BEGIN
    SELECT CASE WHEN s.writer = pg_current_xact_id_if_assigned()
            THEN s.settled ELSE s.sts END,
        s.is_fenced, s.started = pg_postmaster_start_time(), l.expires
    INTO sts, is_fenced, is_ready, expires
    FROM (
        SELECT n.* FROM tique.sequencer_steps AS n ORDER BY n.cts DESC LIMIT 1
    ) AS s
    LEFT JOIN tique.sequencer_leases AS l ON l.client = sts_for.client;
    IF is_ready IS NOT TRUE THEN
        PERFORM tique.sequencer_refuse('sts_for', 'unrecovered');
    END IF;
    IF expires <= clock_timestamp() THEN
        -- Unless it is being renewed at this moment.
        SELECT l.expires INTO expires FROM tique.sequencer_leases AS l
        WHERE l.client = sts_for.client FOR SHARE;
    END IF;
    IF expires > clock_timestamp() THEN
        fences := '{}';
    ELSE
        PERFORM tique.sequencer_refuse('sts_for', 'gone');
    END IF;
    -- After sts, so that all fences that it covers are there.
    IF is_fenced THEN
        fences := ARRAY(SELECT f.cts FROM tique.sequencer_fences AS f ORDER BY f.cts);
    END IF;
END
$$;

-- One statement under the mutex does it; where it fails, further ones find the reason.
CREATE FUNCTION tique.certify(client bigint, after bigint, keys bytea) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    count integer := length(keys) / 16;
    split bytea[];
    rivals bytea[];
    is_renewed boolean := false;
    state tique.sequencer_steps;
    winner bigint;
    taken bigint;
BEGIN
    IF length(keys) % 16 <> 0 THEN
        PERFORM tique.sequencer_refuse('certify', 'length');
    ELSIF count > 65536 THEN
        PERFORM tique.sequencer_refuse('certify', 'keys');
    END IF;
    split := tique.sequencer_split(keys);
    rivals := tique.sequencer_rivals(keys, split);
    PERFORM tique.sequencer_lock('certify');
    LOOP
        IF count > 64 THEN
            winner := tique.sequencer_winner(after, rivals);
        END IF;
        INSERT INTO tique.sequencer_steps AS t (
            cts, sts, settled, barrier, forgotten, written, writer, started, is_fenced,
            keys
        )
        SELECT s.cts + 1, s.cts + 1, s.settled,
            CASE WHEN count > 16384 THEN s.cts + 1 ELSE s.barrier END,
            s.forgotten, s.written + count, pg_current_xact_id(), s.started,
            s.is_fenced, CASE WHEN count <= 16384 THEN split END
        FROM (
            SELECT n.cts, n.barrier, n.forgotten, n.written, n.started, n.is_fenced,
                CASE WHEN n.writer = pg_current_xact_id_if_assigned()
                    THEN n.settled ELSE n.sts END AS settled
            FROM tique.sequencer_steps AS n ORDER BY n.cts DESC LIMIT 1
        ) AS s
        WHERE s.started = pg_postmaster_start_time()
            AND EXISTS (
                SELECT FROM tique.sequencer_leases AS l WHERE l.client = certify.client
                    AND (is_renewed OR l.expires > clock_timestamp())
            )
            AND after BETWEEN s.barrier AND s.settled
            AND winner IS NULL
            AND (count > 64 OR NOT EXISTS (
                SELECT FROM tique.sequencer_steps AS o
                WHERE o.cts > after AND o.cts <= 4611686018427387903
                    AND o.keys && rivals
            ))
        RETURNING t.cts INTO taken;
        IF taken % 64 = 0 THEN
            PERFORM tique.sequencer_forget(tique.sequencer_state('certify'));
        END IF;
        IF taken > 0 THEN
            RETURN taken;
        END IF;
        state := tique.sequencer_enter('certify', client);
        IF after NOT BETWEEN 0 AND state.settled THEN
            PERFORM tique.sequencer_refuse('certify', 'unknown');
        END IF;
        winner := tique.sequencer_winner(after, rivals);
        IF state.barrier > after OR winner IS NOT NULL THEN
            RETURN -greatest(state.barrier, winner);
        END IF;
        is_renewed := true;
    END LOOP;
END
$$;

CREATE FUNCTION tique.next_cts(client bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN tique.sequencer_bar(client, NULL, 16); END $$;

CREATE FUNCTION tique.next_cts(client bigint, milliseconds bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN tique.sequencer_bar(client, milliseconds, 1); END $$;

CREATE FUNCTION tique.sequencer_bar(client bigint, milliseconds bigint, most integer)
RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    state tique.sequencer_steps := tique.sequencer_enter('next_cts', client);
BEGIN
    IF state.cts - state.sts >= 65536 THEN
        PERFORM tique.sequencer_refuse('next_cts', 'ring');
    ELSIF (
        SELECT count(*) >= most FROM tique.sequencer_barriers AS b
        WHERE b.client = sequencer_bar.client AND NOT b.is_finished
            AND b.finish_by > clock_timestamp()
    ) THEN
        PERFORM tique.sequencer_refuse('next_cts', 'share');
    END IF;
    state.cts := state.cts + 1;
    state.barrier := state.cts;
    state.keys := NULL;
    INSERT INTO tique.sequencer_steps VALUES (state.*);
    DELETE FROM tique.sequencer_barriers AS b
    WHERE b.client = sequencer_bar.client AND b.is_overdue AND b.cts <= state.sts;
    INSERT INTO tique.sequencer_barriers VALUES (state.cts, client, false,
        CASE WHEN milliseconds IS NULL THEN 'infinity'
            ELSE tique.sequencer_deadline(milliseconds) END);
    IF state.cts % 64 = 0 THEN
        PERFORM tique.sequencer_forget(state);
    END IF;
    RETURN state.cts;
END
$$;

CREATE FUNCTION tique.holds(client bigint, cts bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM tique.sequencer_state('holds');
    IF NOT tique.sequencer_has(client) THEN
        PERFORM tique.sequencer_refuse('holds', 'gone');
    END IF;
    RETURN EXISTS (
        SELECT FROM tique.sequencer_barriers AS b
        WHERE b.cts = holds.cts AND b.client = holds.client AND NOT b.is_finished
            AND b.finish_by > clock_timestamp()
    );
END
$$;

-- Where no timer can be set there is tique.guest_release.
CREATE FUNCTION tique.limit_transaction(milliseconds bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM set_config('idle_in_transaction_session_timeout', milliseconds || 'ms', true);
END
$$;

CREATE FUNCTION tique.sequencer_finish(name text, client bigint, finished bigint)
RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    state tique.sequencer_steps := tique.sequencer_enter(name, client);
BEGIN
    PERFORM FROM tique.sequencer_barriers AS b
    WHERE b.cts = finished AND b.client = sequencer_finish.client
        AND (b.is_overdue OR tique.sequencer_doubts(b));
    IF FOUND AND name = 'finish' THEN
        PERFORM tique.sequencer_refuse(name, 'overdue');
    ELSIF FOUND OR finished BETWEEN 1 AND state.sts THEN
        RETURN state.sts;
    END IF;
    UPDATE tique.sequencer_barriers AS b SET is_finished = true
    WHERE b.cts = finished AND b.client = sequencer_finish.client;
    IF NOT FOUND THEN
        PERFORM tique.sequencer_refuse(name, 'unknown');
    END IF;
    RETURN tique.sequencer_advance(state);
END
$$;

CREATE FUNCTION tique.finish(client bigint, cts bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN tique.sequencer_finish('finish', client, cts); END $$;

CREATE FUNCTION tique.abort(client bigint, cts bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN tique.sequencer_finish('abort', client, cts); END $$;

-- By polling: a commit cannot wake others but by NOTIFY, which would take a lock over
-- all databases of the server with every commit. Only barriers are waited for.
CREATE FUNCTION tique.wait(cts bigint, milliseconds bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    deadline timestamptz := tique.sequencer_deadline(milliseconds);
    pause double precision := 0.001;
    left_over double precision;
    state tique.sequencer_steps;
BEGIN
    LOOP
        state := tique.sequencer_state('wait');
        IF state.settled >= cts THEN
            RETURN true;
        END IF;
        PERFORM FROM tique.sequencer_barriers AS b
        WHERE b.cts <= wait.cts AND NOT b.is_finished
            AND (b.finish_by <= clock_timestamp()
                OR NOT tique.sequencer_has(b.client));
        IF FOUND THEN
            PERFORM tique.sequencer_expire('wait');
            RETURN false;
        END IF;
        left_over := extract(epoch FROM deadline - clock_timestamp());
        IF left_over <= 0 THEN
            RETURN false;
        END IF;
        PERFORM pg_sleep(least(pause, left_over));
        pause := least(pause * 2, 0.016);
    END LOOP;
END
$$;

CREATE FUNCTION tique.sts() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN (tique.sequencer_state('sts')).settled; END $$;

CREATE FUNCTION tique.cts() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN (tique.sequencer_state('cts')).cts; END $$;

CREATE FUNCTION tique.keys() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM tique.sequencer_state('keys');
    RETURN (
        SELECT coalesce(sum(cardinality(s.keys)), 0) FROM tique.sequencer_steps AS s
    );
END
$$;

CREATE FUNCTION tique.doubtful() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM tique.sequencer_state('doubtful');
    PERFORM tique.sequencer_expire('doubtful');
    RETURN coalesce((
        SELECT min(b.cts) FROM tique.sequencer_barriers AS b
        WHERE tique.sequencer_doubts(b)
    ), 0);
END
$$;

CREATE FUNCTION tique.doubts(most integer) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM tique.sequencer_state('doubts');
    PERFORM tique.sequencer_expire('doubts');
    RETURN ARRAY(
        SELECT b.cts FROM tique.sequencer_barriers AS b
        WHERE tique.sequencer_doubts(b)
        ORDER BY b.cts LIMIT greatest(most, 0)
    );
END
$$;

CREATE FUNCTION tique.forget_fences(until bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    forgotten bigint;
BEGIN
    PERFORM tique.sequencer_state('forget_fences');
    DELETE FROM tique.sequencer_fences AS f WHERE f.cts <= until;
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END
$$;

CREATE FUNCTION tique.fence(cts bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    state tique.sequencer_steps := tique.sequencer_enter('fence', NULL);
BEGIN
    PERFORM tique.sequencer_expire('fence');
    IF EXISTS (SELECT FROM tique.sequencer_fences AS f WHERE f.cts = fence.cts) THEN
        RETURN;
    END IF;
    UPDATE tique.sequencer_barriers AS b
    SET is_finished = true, is_overdue = b.finish_by <= clock_timestamp()
    WHERE b.cts = fence.cts AND tique.sequencer_doubts(b);
    IF NOT FOUND THEN
        PERFORM tique.sequencer_refuse('fence', 'in use');
    ELSIF (SELECT count(*) >= 65536 FROM tique.sequencer_fences) THEN
        PERFORM tique.sequencer_refuse('fence', 'fences');
    END IF;
    INSERT INTO tique.sequencer_fences VALUES (fence.cts);
    state.is_fenced := true;
    PERFORM tique.sequencer_advance(state);
END
$$;

-- None is granted to PUBLIC (P11): the role that installs this grants them.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tique FROM PUBLIC;

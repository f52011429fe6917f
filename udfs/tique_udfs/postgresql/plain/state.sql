-- The sequencer for PostgreSQL servers where no extension may be installed: PL/pgSQL
-- functions over tables of schema tique, for the role that owns the schema. It is the
-- state machine of ../../core/sequencer.h; only the differences follow.
--
-- Where the state is
--   In UNLOGGED tables. PostgreSQL empties them when it recovers from a crash, also
--   from one backend's, and a standby that is promoted has them empty: the sequencer is
--   unrecovered then by itself. An ordinary stop leaves them as they are, and the time
--   at which the server was started (`started`) shows that. A transaction that writes
--   nothing else costs no fsync.
--
--   Each timestamp that is handed out is a row of sequencer_steps, with the state from
--   then on; the newest row is the state. The row is found at the right end of its
--   index, however many dead ones a long transaction keeps from being vacuumed.
--
-- The mutex
--   A session that hands out or settles a timestamp, registers a snapshot or drops a
--   client holds the lock EXCLUSIVE on the empty table sequencer_mutex until its
--   transaction has ended. A role without privileges on the table cannot take it, as it
--   could an advisory lock (P11). Every function is VOLATILE, so that at READ COMMITTED
--   each of its statements has a snapshot of its own: the first one after LOCK sees all
--   that the holders before have committed. At REPEATABLE READ it would not, so that
--   level is refused.
--
-- A commit's timestamp (P2, P3, P5)
--   certify compares and records the step, keys and sts included, inside the
--   transaction that writes the versions. COMMIT makes all of it durable, then visible
--   at once, and then releases the mutex. So sts never covers versions that are not
--   there; the next certification finds the keys; and a transaction that ends
--   otherwise, wherever its backend dies, has taken no timestamp: its number goes to
--   the next one, and no other session has seen it. There is no moment at which it is
--   in doubt, and no lease plays a part.
--
--   A transaction sees its own writes, but must not give them away before COMMIT: a
--   step has its transaction in `writer` and the sts before it in `settled`.
--
-- A barrier (next_cts)
--   Its timestamp belongs to a client, in sequencer_barriers, until it is finished or
--   fenced. While one is under way it is newer than sts, and certify refuses every
--   client that has not certified up to the newest barrier, that is all clients: so
--   only barriers can be unfinished, sts is the number before the first of them, and a
--   timestamp from certify is covered as soon as it is committed.
--
--   With a time limit it is doubtful when that is over, though its client is there. A
--   fence marks it (`is_overdue`), and its row stays until the client takes another one or
--   is gone: the client is told that it did not commit. The row of the lease is not
--   touched, since a transaction that renews it holds it.
--
-- A session that holds the mutex and stays idle
--   SQL has no statement that ends a transaction after a time. A setting ends idle
--   ones, which the session can set back; else tique.guest_release, which threads of
--   other processes call.
--
-- Leases (P6)
--   A client is gone when its row of sequencer_leases is. The session that notices rows
--   that ran out deletes them, under the mutex, but for those that are locked: the
--   client of a transaction that renewed the lease and is about to commit cannot be
--   dropped before it has ended. No session waits for such a row while it holds the
--   mutex. A lease that ran out is never renewed, so that a client which was refused
--   once is refused for ever.
--   A barrier whose client has no row is doubtful, and its snapshots count no longer.
--
-- lambda (P7)
--   begin_transaction reads sts and records its snapshot under the mutex, and no sts
--   can get beyond that snapshot before it is committed, since that takes the mutex as
--   well. So lambda, which reads sts first and the snapshots later, finds every
--   snapshot that is older than the sts it has read. It needs no mutex, and sts never
--   decreases.
--
-- Duties of the callers
--   Call everything but certify and renew_client in transactions of their own; commit
--   soon after certify, with synchronous_commit on, and not by PREPARE TRANSACTION.
--   Where one transaction certifies and renews, certify first.

CREATE UNLOGGED TABLE tique.sequencer_mutex () WITH (autovacuum_enabled = off);

-- forgotten: the steps up to here are deleted. written: the number of keys that were
-- recorded up to here. keys: NULL where they are unknown, or too many.
CREATE UNLOGGED TABLE tique.sequencer_steps (
    cts bigint PRIMARY KEY,
    sts bigint NOT NULL,
    settled bigint NOT NULL,
    barrier bigint NOT NULL,
    forgotten bigint NOT NULL,
    written bigint NOT NULL,
    writer xid8 NOT NULL,
    started timestamptz NOT NULL,
    is_fenced boolean NOT NULL,
    keys bytea[]
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = -1,
    vacuum_truncate = off
);

CREATE UNLOGGED TABLE tique.sequencer_barriers (
    cts bigint PRIMARY KEY,
    client bigint NOT NULL,
    is_finished boolean NOT NULL,
    finish_by timestamptz NOT NULL DEFAULT 'infinity',
    is_overdue boolean NOT NULL DEFAULT false
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 200,
    vacuum_truncate = off
);

CREATE UNLOGGED TABLE tique.sequencer_leases (
    client bigint PRIMARY KEY,
    expires timestamptz NOT NULL,
    role oid
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 200,
    vacuum_truncate = off
);

CREATE UNLOGGED TABLE tique.sequencer_snapshots (
    txid bigint PRIMARY KEY,
    client bigint NOT NULL,
    sts bigint NOT NULL
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 200,
    vacuum_truncate = off
);

CREATE UNLOGGED TABLE tique.sequencer_fences (cts bigint PRIMARY KEY);

CREATE UNLOGGED SEQUENCE tique.sequencer_txids;

-- The secret with which keys are hashed, since clients choose them: PostgreSQL's own
-- hash has none, and the mutex is held while keys are compared.
CREATE UNLOGGED TABLE tique.sequencer_secret (secret bytea NOT NULL);

CREATE FUNCTION tique.sequencer_refuse(name text, status text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    code text := CASE status WHEN 'gone' THEN 'TQ001' WHEN 'unrecovered' THEN 'TQ002'
        WHEN 'overdue' THEN 'TQ004' ELSE 'TQ003' END;
    words text[] := CASE status
        WHEN 'gone' THEN ARRAY['fenced: the client''s lease ran out',
            'What it had under way is aborted; connect again.']
        WHEN 'unrecovered' THEN ARRAY['recovery has not run since the server started',
            'Call tique.recover first.']
        WHEN 'isolation' THEN ARRAY['the transaction is not at READ COMMITTED',
            'Begin it at READ COMMITTED.']
        WHEN 'ring' THEN ARRAY['too many timestamps wait for an unfinished one',
            'Finish it: commit or end the oldest transaction that has one.']
        WHEN 'snapshots' THEN ARRAY['too many transactions are active', 'End some.']
        WHEN 'clients' THEN ARRAY['too many clients have joined',
            'Close the database in some processes.']
        WHEN 'fences' THEN ARRAY['too many fences are there',
            'Restart the server, whose recovery needs none.']
        WHEN 'length' THEN ARRAY['a key has 16 bytes',
            'Pass the keys one after the other.']
        WHEN 'keys' THEN ARRAY['too many keys in one write set',
            'Take a barrier for it: next_cts.']
        WHEN 'share' THEN ARRAY['the client has as much as one may have',
            'End some of its transactions, or finish its timestamps.']
        WHEN 'role' THEN ARRAY['the role has as many clients as one may have',
            'Close the database in some of its processes.']
        WHEN 'overdue' THEN ARRAY['the timestamp was not finished within its time, and '
            'others went on without it',
            'What has it is aborted; write less in one transaction.']
        WHEN 'in use' THEN ARRAY['it is in use', 'Recover once, before the first '
            'transaction; fence only what is in doubt.']
        ELSE ARRAY['it is not known', 'It was never handed out or is not active, is '
            'another''s, or not all up to it is finished.']
        END;
BEGIN
    RAISE EXCEPTION USING ERRCODE = code, HINT = words[2],
        MESSAGE = 'tique.' || name || ': ' || words[1];
END
$$;

-- The newest step, where `settled` is the sts that all sessions see.
CREATE FUNCTION tique.sequencer_state(name text) RETURNS tique.sequencer_steps
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    state tique.sequencer_steps;
BEGIN
    SELECT s.* INTO state FROM tique.sequencer_steps AS s ORDER BY s.cts DESC LIMIT 1;
    IF state.started IS DISTINCT FROM pg_postmaster_start_time() THEN
        PERFORM tique.sequencer_refuse(name, 'unrecovered');
    END IF;
    IF state.writer IS DISTINCT FROM pg_current_xact_id_if_assigned() THEN
        state.settled := state.sts;
    END IF;
    RETURN state;
END
$$;

-- Whether the client is there. One whose lease is being renewed or dropped, in a
-- transaction that has not ended, is.
CREATE FUNCTION tique.sequencer_has(asking bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    runs boolean;
BEGIN
    SELECT l.expires > clock_timestamp() INTO runs
    FROM tique.sequencer_leases AS l WHERE l.client = asking;
    IF runs THEN
        RETURN true;
    ELSIF runs IS NULL THEN
        RETURN false;
    END IF;
    PERFORM FROM tique.sequencer_leases AS l
    WHERE l.client = asking AND l.expires <= clock_timestamp() FOR UPDATE SKIP LOCKED;
    RETURN NOT FOUND;
END
$$;

CREATE FUNCTION tique.sequencer_lock(name text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
    THEN
        PERFORM tique.sequencer_refuse(name, 'isolation');
    END IF;
    LOCK TABLE tique.sequencer_mutex IN EXCLUSIVE MODE;
    PERFORM set_config('idle_in_transaction_session_timeout', '1200ms', true);
END
$$;

-- Takes the mutex, makes sure that the client is there if one is given, and returns the
-- newest step as this transaction would write it.
CREATE FUNCTION tique.sequencer_enter(name text, asking bigint)
RETURNS tique.sequencer_steps
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    state tique.sequencer_steps;
BEGIN
    PERFORM tique.sequencer_lock(name);
    state := tique.sequencer_state(name);
    IF asking IS NOT NULL AND NOT tique.sequencer_has(asking) THEN
        PERFORM tique.sequencer_refuse(name, 'gone');
    END IF;
    state.writer := pg_current_xact_id();
    RETURN state;
END
$$;

-- Drops the clients whose leases ran out.
CREATE FUNCTION tique.sequencer_expire(name text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM tique.sequencer_leases AS l WHERE l.expires <= clock_timestamp();
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM tique.sequencer_enter(name, NULL);
    DELETE FROM tique.sequencer_leases WHERE client IN (
        SELECT l.client FROM tique.sequencer_leases AS l
        WHERE l.expires <= clock_timestamp() FOR UPDATE SKIP LOCKED
    );
    DELETE FROM tique.sequencer_snapshots WHERE txid IN (
        SELECT s.txid FROM tique.sequencer_snapshots AS s
        WHERE NOT EXISTS (
            SELECT FROM tique.sequencer_leases AS l WHERE l.client = s.client
        ) FOR UPDATE SKIP LOCKED
    );
    PERFORM tique.sequencer_drop_lockers();
    DELETE FROM tique.sequencer_barriers AS b
    WHERE b.is_overdue AND b.is_finished AND NOT EXISTS (
        SELECT FROM tique.sequencer_leases AS l WHERE l.client = b.client
    );
END
$$;

-- Whether a barrier has to be fenced: its client is gone, or its time is over.
CREATE FUNCTION tique.sequencer_doubts(barrier tique.sequencer_barriers) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN NOT barrier.is_finished AND (
        barrier.finish_by <= clock_timestamp() OR NOT EXISTS (
            SELECT FROM tique.sequencer_leases AS l WHERE l.client = barrier.client
        )
    );
END
$$;

-- Lets sts cover the finished timestamps; returns it.
CREATE FUNCTION tique.sequencer_advance(state tique.sequencer_steps) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    SELECT coalesce(min(b.cts) - 1, state.cts) INTO state.sts
    FROM tique.sequencer_barriers AS b WHERE NOT b.is_finished;
    DELETE FROM tique.sequencer_barriers AS b
    WHERE b.cts <= state.sts AND NOT b.is_overdue;
    UPDATE tique.sequencer_steps AS s
    SET sts = state.sts, settled = state.settled, writer = state.writer,
        is_fenced = state.is_fenced
    WHERE s.cts = state.cts;
    RETURN state.sts;
END
$$;

-- Keys in the form in which they are kept and compared.
CREATE FUNCTION tique.sequencer_split(keys bytea) RETURNS bytea[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    secret bytea := (SELECT s.secret FROM tique.sequencer_secret AS s);
BEGIN
    IF length(keys) = 16 THEN
        RETURN ARRAY[substr(sha256(secret || keys), 1, 16)];
    END IF;
    RETURN coalesce((
        SELECT array_agg(substr(sha256(secret || substr(keys, p * 16 + 1, 16)), 1, 16))
        FROM generate_series(0, length(keys) / 16 - 1) AS p
    ), '{}');
END
$$;

-- The keys that these are in conflict with, in that form. A key may have a mode in its
-- eighth byte: in shared mode (S) it conflicts with the same one in exclusive mode (X)
-- only, in exclusive mode with both.
CREATE FUNCTION tique.sequencer_rivals(keys bytea, split bytea[]) RETURNS bytea[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    shared bytea := '\x0074697175650053';
    exclusive bytea := '\x0074697175650058';
BEGIN
    IF position(shared IN keys) = 0 AND position(exclusive IN keys) = 0 THEN
        RETURN split;
    END IF;
    RETURN tique.sequencer_split((
        SELECT string_agg(
            CASE substr(k.key, 1, 8)
                WHEN shared THEN exclusive || substr(k.key, 9)
                WHEN exclusive THEN k.key || shared || substr(k.key, 9)
                ELSE k.key
            END, '')
        FROM (
            SELECT substr(keys, p * 16 + 1, 16) AS key
            FROM generate_series(0, length(keys) / 16 - 1) AS p
        ) AS k
    ));
END
$$;

-- The last timestamp after this one that wrote one of the keys. Only an interval with
-- two ends is few rows for the planner, to be found by their index.
CREATE FUNCTION tique.sequencer_winner(after bigint, keys bytea[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT max(w.cts) FROM (
            SELECT s.cts, unnest(s.keys) AS key FROM tique.sequencer_steps AS s
            WHERE s.cts > after AND s.cts <= 4611686018427387903
        ) AS w
        WHERE w.key IN (SELECT unnest(sequencer_winner.keys))
    );
END
$$;

-- Deletes steps more than 2048 timestamps or 262144 keys old; the barrier covers them.
CREATE FUNCTION tique.sequencer_forget(state tique.sequencer_steps) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    until bigint := least(state.cts - 2048, state.settled);
BEGIN
    SELECT greatest(until, max(s.cts)) INTO until FROM tique.sequencer_steps AS s
    WHERE s.cts > greatest(until, state.forgotten) AND s.cts <= state.settled
        AND s.written <= state.written - 262144;
    DELETE FROM tique.sequencer_steps AS s
    WHERE s.cts > state.forgotten AND s.cts <= until;
    UPDATE tique.sequencer_steps AS s
    SET forgotten = until, barrier = greatest(s.barrier, until)
    WHERE s.cts = state.cts AND until > s.forgotten;
END
$$;

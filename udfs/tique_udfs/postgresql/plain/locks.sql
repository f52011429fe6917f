-- Row locks (../../core/sequencer.h, "Row locks").
--
-- A locker that waits has a `turn`. Lockers and locks change under the mutex, which certify
-- takes as well, until its COMMIT: so a lock is granted before a commit looks for it, or
-- after that commit has ended. While a call waits it has no mutex, and looks by itself:
-- whether a number seems free decides only when it asks.

CREATE UNLOGGED TABLE tique.sequencer_lockers (
    id bigint PRIMARY KEY,
    client bigint NOT NULL,
    number bigint,
    shared boolean,
    turn bigint,
    is_interrupted boolean
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 200, vacuum_truncate = off);

CREATE UNLOGGED TABLE tique.sequencer_locks (
    number bigint,
    locker bigint,
    shared boolean,
    PRIMARY KEY (number, locker, shared)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
    vacuum_truncate = off);

CREATE INDEX ON tique.sequencer_locks (locker);

-- Drops what belongs to clients that are gone.
CREATE FUNCTION tique.sequencer_drop_lockers() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM tique.sequencer_lockers AS o WHERE NOT EXISTS (
        SELECT FROM tique.sequencer_leases AS l WHERE l.client = o.client
    );
    IF FOUND THEN
        DELETE FROM tique.sequencer_locks AS k WHERE NOT EXISTS (
            SELECT FROM tique.sequencer_lockers AS o WHERE o.id = k.locker
        );
    END IF;
END
$$;

-- Those that a locker waits for, or would wait for, when it has a number in mind.
CREATE FUNCTION tique.sequencer_awaited(own tique.sequencer_lockers)
RETURNS SETOF bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT k.locker FROM tique.sequencer_locks AS k
    WHERE k.number = own.number AND k.locker <> own.id AND NOT (own.shared AND k.shared)
    UNION
    SELECT o.id FROM tique.sequencer_lockers AS o
    WHERE o.number = own.number AND o.id <> own.id AND NOT (own.shared AND o.shared)
        AND o.turn < coalesce(own.turn, 9223372036854775807) AND NOT EXISTS (
            SELECT FROM tique.sequencer_locks AS k
            WHERE k.number = own.number AND k.locker = own.id
        )
$$;

-- The locker, which waits for nothing but what it is said to wait for.
CREATE FUNCTION tique.sequencer_locker(
    name text, client bigint, locker bigint, awaited bigint, shared boolean
) RETURNS tique.sequencer_lockers
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own tique.sequencer_lockers;
BEGIN
    PERFORM tique.sequencer_expire(name);
    PERFORM tique.sequencer_enter(name, client);
    UPDATE tique.sequencer_lockers AS o SET turn = NULL
    WHERE o.id = locker AND o.client = sequencer_locker.client AND o.turn IS NOT NULL
        AND (o.number, o.shared) IS DISTINCT FROM (awaited, sequencer_locker.shared);
    SELECT o.* INTO own FROM tique.sequencer_lockers AS o
    WHERE o.id = locker AND o.client = sequencer_locker.client;
    RETURN own;
END
$$;

CREATE FUNCTION tique.open_locker(client bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    opened bigint;
BEGIN
    PERFORM tique.sequencer_expire('open_locker');
    PERFORM tique.sequencer_enter('open_locker', client);
    IF (
        SELECT count(*) >= 4096
            OR count(*) FILTER (WHERE o.client = open_locker.client) >= 256
        FROM tique.sequencer_lockers AS o
    ) THEN
        PERFORM tique.sequencer_refuse('open_locker', 'share');
    END IF;
    INSERT INTO tique.sequencer_lockers (id, client)
    VALUES (nextval('tique.sequencer_txids'), client) RETURNING id INTO opened;
    RETURN opened;
END
$$;

CREATE FUNCTION tique.close_locker(client bigint, locker bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF tique.sequencer_locker('close_locker', client, locker, NULL, NULL) IS NULL THEN
        PERFORM tique.sequencer_refuse('close_locker', 'unknown');
    END IF;
    DELETE FROM tique.sequencer_locks AS k WHERE k.locker = close_locker.locker;
    DELETE FROM tique.sequencer_lockers AS o WHERE o.id = locker;
END
$$;

CREATE FUNCTION tique.interrupt_locker(client bigint, locker bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM tique.sequencer_enter('interrupt_locker', client);
    UPDATE tique.sequencer_lockers AS o SET is_interrupted = true
    WHERE o.id = locker AND o.client = interrupt_locker.client AND o.turn IS NOT NULL;
END
$$;

CREATE FUNCTION tique.lock(
    client bigint, locker bigint, shared boolean, milliseconds bigint, numbers bigint[]
) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    deadline timestamptz := tique.sequencer_deadline(least(milliseconds, 1000));
    pause double precision := 0.001;
    own tique.sequencer_lockers;
    done bigint := 0;
    awaited bigint;
BEGIN
    IF array_ndims(numbers) > 1 OR array_position(numbers, NULL) IS NOT NULL
        OR milliseconds > 0 AND cardinality(numbers) <> 1
    THEN
        PERFORM tique.sequencer_refuse('lock', 'unknown');
    ELSIF milliseconds > 0 THEN
        awaited := numbers[array_lower(numbers, 1)];
    END IF;
    -- It waits already: the place in the queue is there for all to see.
    WHILE awaited IS NOT NULL AND clock_timestamp() < deadline LOOP
        SELECT o.* INTO own FROM tique.sequencer_lockers AS o
        WHERE o.id = locker AND o.client = lock.client AND o.number = awaited
            AND o.shared = lock.shared AND o.turn IS NOT NULL AND NOT o.is_interrupted
            AND NOT EXISTS (
                SELECT FROM tique.sequencer_leases AS l
                WHERE l.expires <= clock_timestamp()
            );
        EXIT WHEN NOT FOUND OR NOT EXISTS (SELECT tique.sequencer_awaited(own));
        PERFORM pg_sleep(pause);
        pause := least(pause * 2, 0.016);
    END LOOP;
    own := tique.sequencer_locker('lock', client, locker, awaited, shared);
    IF own.id IS NULL THEN
        RETURN -4;
    ELSIF (
        SELECT count(*) FILTER (WHERE k.locker = own.id) + cardinality(numbers) > 1024
            OR count(*) FILTER (WHERE o.client = own.client) > 16384
            OR count(*) + cardinality(numbers) > 65536
        FROM tique.sequencer_locks AS k JOIN tique.sequencer_lockers AS o
            ON o.id = k.locker
    ) THEN
        PERFORM tique.sequencer_refuse('lock', 'share');
    END IF;
    own.shared := shared;
    FOREACH own.number IN ARRAY numbers LOOP
        EXIT WHEN EXISTS (SELECT tique.sequencer_awaited(own));
        INSERT INTO tique.sequencer_locks VALUES (own.number, own.id, shared)
        ON CONFLICT DO NOTHING;
        done := done + 1;
    END LOOP;
    IF awaited IS NULL OR done > 0 THEN
        UPDATE tique.sequencer_lockers AS o SET turn = NULL
        WHERE o.id = own.id AND o.turn IS NOT NULL;
        RETURN done;
    ELSIF own.turn IS NULL THEN
        UPDATE tique.sequencer_lockers AS o
        SET number = awaited, shared = lock.shared, is_interrupted = false,
            turn = nextval('tique.sequencer_txids')
        WHERE o.id = own.id;
        own.is_interrupted := EXISTS (
            WITH RECURSIVE behind(id) AS (
                SELECT tique.sequencer_awaited(o) FROM tique.sequencer_lockers AS o
                WHERE o.id = own.id
                UNION SELECT tique.sequencer_awaited(o) FROM behind
                JOIN tique.sequencer_lockers AS o USING (id) WHERE o.turn IS NOT NULL
            ) SELECT FROM behind WHERE id = own.id
        );
        done := -18;
    ELSE
        done := -19;
    END IF;
    IF own.is_interrupted THEN
        UPDATE tique.sequencer_lockers AS o SET turn = NULL WHERE o.id = own.id;
        RETURN done;
    END IF;
    RETURN 0;
END
$$;

CREATE FUNCTION tique.unlock(
    client bigint, locker bigint, shared boolean, numbers bigint[]
) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF tique.sequencer_locker('unlock', client, locker, NULL, NULL) IS NULL THEN
        PERFORM tique.sequencer_refuse('unlock', 'unknown');
    END IF;
    DELETE FROM tique.sequencer_locks AS k WHERE k.locker = unlock.locker
        AND k.shared = unlock.shared AND k.number = ANY (numbers);
END
$$;

CREATE FUNCTION tique.expect_free(numbers bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    locked text := (
        SELECT string_agg(DISTINCT k.number::text, ' ') FROM tique.sequencer_locks AS k
        JOIN tique.sequencer_lockers AS o ON o.id = k.locker
        JOIN tique.sequencer_leases AS l USING (client)
        WHERE k.number = ANY (numbers)
    );
BEGIN
    IF locked IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TQ005',
            MESSAGE = 'tique.expect_free: locked ' || locked,
            HINT = 'Wait for these locks, then try again.';
    END IF;
END
$$;

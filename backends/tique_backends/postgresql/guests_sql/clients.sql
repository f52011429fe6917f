-- Joining, leaving, and dropping other clients that are gone.

-- A role has its share of the clients, so that others can join (P11).
CREATE FUNCTION tique.inner_join(milliseconds bigint) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT tique.join_client(least(milliseconds, 300000), r.oid)
    FROM pg_roles AS r WHERE r.rolname = tique.guest()
$$;

CREATE FUNCTION tique.guest_renew(client bigint, milliseconds bigint) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT tique.renew_client(client, least(milliseconds, 300000)) $$;

-- An epoch for the client: its first one, or another one when its transaction ids are
-- used up. The session has the lock of the mark, or gets it if it can: it never waits. Of very
-- many epochs the oldest go: the transactions in them are a billion transactions old.
CREATE FUNCTION tique.inner_introduce(client bigint, mark integer, format integer)
RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    taken bigint;
BEGIN
    PERFORM tique.sts_for(client);
    UPDATE tique.format SET epoch = epoch + 1 RETURNING epoch INTO taken;
    PERFORM FROM tique.clients AS c WHERE c.client = inner_introduce.client;
    IF NOT FOUND THEN
        PERFORM pg_try_advisory_lock({locks}, {lock_of_mark});
    END IF;
    INSERT INTO tique.clients VALUES (client, taken, mark, DEFAULT, format);
    DELETE FROM tique.clients AS c WHERE c.epoch IN (
        SELECT o.epoch FROM tique.clients AS o WHERE o.client = inner_introduce.client
        ORDER BY o.epoch DESC OFFSET 1024
    );
    RETURN taken;
END
$$;

CREATE FUNCTION tique.guest_leave(client bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM tique.limit_transaction({limit});
    DELETE FROM tique.clients AS c WHERE c.client = guest_leave.client;
    PERFORM tique.leave_client(client);
EXCEPTION WHEN SQLSTATE 'TQ001' THEN
    DELETE FROM tique.clients AS c WHERE c.client = guest_leave.client;
END
$$;

-- Drops the clients of processes that have ended, and of this role's that were given up:
-- the marks of this role's sessions among theirs.
CREATE FUNCTION tique.inner_tend() RETURNS integer[]
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    marks integer[] := '{}';
    other record;
BEGIN
    PERFORM tique.guest_sees_all();
    FOR other IN SELECT DISTINCT c.client, c.mark, c.role FROM tique.clients AS c
        WHERE ({lock_of_mark}, c.role) NOT IN ({alive})
    LOOP
        PERFORM tique.guest_leave(other.client);
        IF other.role = session_user THEN
            marks := marks || other.mark;
        END IF;
    END LOOP;
    IF (SELECT count(DISTINCT c.client) FROM tique.clients AS c) > tique.clients() THEN
        FOR other IN SELECT DISTINCT c.client, c.mark FROM tique.clients AS c
            WHERE c.role = session_user
        LOOP
            BEGIN
                PERFORM tique.sts_for(other.client);
            EXCEPTION WHEN SQLSTATE 'TQ001' THEN
                marks := marks || other.mark;
                DELETE FROM tique.clients AS c WHERE c.client = other.client;
            END;
        END LOOP;
    END IF;
    RETURN marks;
END
$$;

-- In the form without C a transaction that holds what others wait for cannot be given a time
-- limit that its session could not set back. So threads of other processes look: a guest's
-- session that has, in one transaction and for a while, the sequencer's mutex for which
-- another one waits, the lock of a commit while a timestamp is in doubt, or the checkpointer's
-- table, is ended; if the owner of the schema may do that: a superuser, or
-- a member of pg_signal_backend.
CREATE FUNCTION tique.guest_release() RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    mutex regclass := to_regclass('tique.sequencer_mutex');
    kept regclass[] := '{tique.checkpointer}';
    holders text[];
BEGIN
    IF mutex IS NULL THEN
        RETURN;
    END IF;
    IF EXISTS (
        SELECT FROM pg_locks AS l WHERE l.relation = mutex AND NOT l.granted
            AND l.waitstart < clock_timestamp() - interval '300 ms'
    ) THEN
        kept := kept || mutex;
    ELSIF tique.doubtful() > 0 THEN
        kept := kept || regclass 'tique.fences';
    END IF;
    holders := ARRAY(SELECT h.virtualtransaction FROM tique.guest_keepers(kept) AS h);
    IF holders <> '{}' THEN
        PERFORM pg_sleep(0.6);
        PERFORM pg_terminate_backend(h.pid) FROM tique.guest_keepers(kept) AS h
        WHERE h.virtualtransaction = ANY (holders);
    END IF;
END
$$;

-- Whether a role is a guest: not the owner of the schema, nor a member of that.
CREATE FUNCTION tique.guest_is(role oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT NOT pg_has_role(role, n.nspowner, 'USAGE') FROM pg_namespace AS n
    WHERE n.nspname = 'tique'
$$;

-- The guests' sessions that have a lock of one of these tables, and that can be ended.
CREATE FUNCTION tique.guest_keepers(kept regclass[])
RETURNS TABLE (pid integer, virtualtransaction text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT l.pid, l.virtualtransaction FROM pg_locks AS l
    JOIN pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.relation = ANY (kept) AND l.granted
        AND l.mode IN ('ExclusiveLock', 'RowShareLock')
        AND tique.guest_is(a.usesysid)
        AND (pg_has_role(a.usesysid, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE'))
$$;

-- Fences, which the owner's processes make with these functions too. First the
-- timestamps in doubt that count for nothing (their entries define nothing) are
-- recorded, as many at a time as are done soon; then, in another transaction, the sequencer lets sts pass them.

CREATE FUNCTION tique.guest_clear(stamps bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    id bigint;
BEGIN
    FOR id IN SELECT t.id FROM tique."tables" AS t LOOP
        EXECUTE format('DELETE FROM %s WHERE _cts = ANY ($1)', tique.guest_cache(id))
        USING stamps;
    END LOOP;
END
$$;

-- The lock that a fencer waits for; a role cannot keep it, as it could an advisory lock.
-- The owner's processes have the time that their COMMIT takes, with the checks that are
-- deferred until then: a limit would refuse such a commit each time.
CREATE FUNCTION tique.guest_committing() RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
BEGIN
    LOCK TABLE tique.fences IN ROW SHARE MODE;
    IF tique.guest_is(to_regrole(quote_ident(tique.guest()))) THEN
        PERFORM tique.limit_transaction({limit});
    END IF;
END
$$;

-- Whether the client is the one that folds, for so long or until it is gone. A guest keeps
-- no process of the owner's from it: which one folds is a matter of turns, and not of what
-- may be written.
CREATE FUNCTION tique.guest_checkpoint(client bigint, milliseconds bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    holder bigint;
BEGIN
    PERFORM tique.limit_transaction({limit});
    PERFORM tique.sts_for(client);
    LOCK TABLE tique.checkpointer IN EXCLUSIVE MODE;
    SELECT p.client INTO holder FROM tique.checkpointer AS p
    WHERE p.client <> guest_checkpoint.client AND p.expires > clock_timestamp()
        AND (tique.guest_is(to_regrole(quote_ident(tique.guest()))) OR EXISTS (
            SELECT FROM tique.clients AS c WHERE c.client = p.client
                AND NOT tique.guest_is(to_regrole(quote_ident(c.role)))
        ));
    IF FOUND THEN
        BEGIN
            PERFORM tique.sts_for(holder);
            RETURN false;
        EXCEPTION WHEN SQLSTATE 'TQ001' THEN
            NULL;
        END;
    END IF;
    DELETE FROM tique.checkpointer;
    INSERT INTO tique.checkpointer SELECT guest_checkpoint.client,
        clock_timestamp() + least(milliseconds, 300000) * interval '1 ms'
    WHERE milliseconds > 0;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;

CREATE FUNCTION tique.guest_disown() RETURNS bigint[]
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    disowned bigint[] := tique.doubts(1024);
    void bigint[];
BEGIN
    PERFORM tique.limit_transaction({limit});
    PERFORM tique.guest_sees_all();
    IF disowned <> '{}' THEN
        -- The transaction that is fenced may be in its COMMIT.
        LOCK TABLE tique.fences IN EXCLUSIVE MODE;
        void := ARRAY(
            SELECT unnest(disowned) EXCEPT
            SELECT l.cts FROM tique.log AS l
            WHERE l.cts = ANY (disowned) AND l.commits LIKE '%true]'
        );
        INSERT INTO tique.fences SELECT unnest(void) ON CONFLICT DO NOTHING;
        PERFORM tique.guest_clear(void);
    END IF;
    RETURN disowned;
END
$$;

-- A fence that is not committed yet might be rolled back, after sts has passed it.
CREATE FUNCTION tique.guest_fence(stamps bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    stamp bigint;
BEGIN
    IF pg_current_xact_id_if_assigned() IS NOT NULL OR EXISTS (
        SELECT s FROM unnest(stamps) AS s WHERE s > tique.sts() EXCEPT (
            SELECT f.cts FROM tique.fences AS f UNION ALL SELECT l.cts FROM tique.log AS l
            WHERE l.cts = ANY (stamps) AND l.commits LIKE '%true]'
        )
    ) THEN
        PERFORM tique.guest_refuse('nothing was written down of this fence');
    END IF;
    FOREACH stamp IN ARRAY stamps LOOP
        BEGIN
            PERFORM tique.fence(stamp);
        EXCEPTION WHEN SQLSTATE 'TQ003' THEN
            -- Another process was faster, and may have forgotten it by now.
            IF stamp > tique.sts() THEN
                RAISE;
            END IF;
        END;
    END LOOP;
END
$$;

-- A fence is garbage-collected when no row has its timestamp and none can get it any
-- more: sts has passed it, so that no transaction begins in its name (guest_holds, and
-- the check of the client before COMMIT); then all transactions have ended that ran at
-- that moment; then their rows are swept away; then, in a transaction of its own,
-- readers need not be told of it any more. Returns whether there are fences to forget,
-- now or later.
-- Of those ``cleared`` elsewhere, if there are such.
CREATE FUNCTION tique.guest_sweep(cleared bigint[] DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    passed bigint := tique.sts();
    swept bigint[];
BEGIN
    PERFORM tique.limit_transaction({limit});
    PERFORM tique.guest_sees_all();
    swept := ARRAY(
        SELECT f.cts FROM tique.fences AS f
        WHERE NOT f.is_swept AND f.settled <= pg_snapshot_xmin(pg_current_snapshot())
            AND (cleared IS NULL OR f.cts = ANY (cleared))
        ORDER BY f.cts LIMIT 4096
    );
    UPDATE tique.fences AS f SET settled = pg_snapshot_xmax(pg_current_snapshot())
    WHERE f.settled IS NULL AND f.cts <= passed;
    IF swept <> '{}' THEN
        DELETE FROM tique.log AS l WHERE l.cts = ANY (swept);
        PERFORM tique.guest_clear(swept);
        UPDATE tique.fences AS f SET is_swept = true WHERE f.cts = ANY (swept);
    END IF;
    RETURN EXISTS (SELECT FROM tique.fences AS f WHERE f.is_swept);
END
$$;

CREATE FUNCTION tique.guest_forget() RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    until bigint;
BEGIN
    PERFORM tique.limit_transaction({limit});
    PERFORM tique.guest_sees_all();
    IF pg_current_xact_id_if_assigned() IS NOT NULL THEN
        PERFORM tique.guest_refuse('what was swept away is not committed');
    END IF;
    SELECT max(f.cts) INTO until FROM tique.fences AS f WHERE f.is_swept
        AND f.cts < ALL (SELECT n.cts FROM tique.fences AS n WHERE NOT n.is_swept);
    -- No fence is made any more below sts, and each of these is.
    IF until <= tique.sts() THEN
        PERFORM tique.forget_fences(until);
        DELETE FROM tique.fences AS f WHERE f.cts <= until;
    END IF;
END
$$;

-- Catching up.

-- The log, where -1 bulk rows stand for versions that the caller may not read.
CREATE FUNCTION tique.inner_log(
    after bigint, OUT cts bigint, OUT txid bigint, OUT commits text
) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    readable text[];
    managed bigint;
BEGIN
    SELECT array_agg(p.id::text) FILTER (WHERE tique.guest_may(p.place, 'SELECT')),
        count(*)
    INTO readable, managed FROM (
        SELECT t.id, to_regclass(format('%I.%I', t.schema_name, t.table_name)) AS place
        FROM tique."tables" AS t
    ) AS p;
    IF cardinality(readable) = (SELECT f.last_table FROM tique.format AS f) THEN
        -- All that there ever were.
        RETURN QUERY SELECT l.cts, l.txid, l.commits FROM tique.log AS l
            WHERE l.cts > after ORDER BY l.cts;
        RETURN;
    END IF;
    RETURN QUERY SELECT l.cts, l.txid, format('[{%s},{%s}%s]', p.shown, p.counted,
            CASE WHEN l.commits::json->>2 = 'true' THEN ',true' END)
        FROM tique.log AS l CROSS JOIN LATERAL (
            SELECT string_agg(format('%s:%s', to_json(e.key), e.value), ',')
                    FILTER (WHERE e.is_readable AND NOT e.is_bulk) AS shown,
                string_agg(format('%s:%s', to_json(e.key),
                    CASE WHEN e.is_readable THEN e.value::text ELSE '-1' END), ',')
                    FILTER (WHERE e.is_bulk OR NOT e.is_readable) AS counted
            FROM (
                SELECT w.key, w.value, false AS is_bulk,
                    coalesce(w.key = ANY (readable), false) AS is_readable
                FROM json_each(CASE json_typeof(l.commits::json->0) WHEN 'object'
                    THEN l.commits::json->0 END) AS w
                UNION ALL SELECT b.key, b.value, true,
                    coalesce(b.key = ANY (readable), false)
                FROM json_each(CASE json_typeof(l.commits::json->1) WHEN 'object'
                    THEN l.commits::json->1 END) AS b
            ) AS e
        ) AS p
        WHERE l.cts > after ORDER BY l.cts;
END
$$;

-- sts and the fences, the caller's privileges on each table (its number and those of
-- the letters r, a, w, d that hold: SELECT, INSERT, UPDATE, DELETE), and the log.
CREATE FUNCTION tique.inner_follow(
    client bigint, after bigint, OUT sts bigint, OUT fences bigint[],
    OUT privileges text, OUT stamps bigint[], OUT txids bigint[], OUT entries text
)
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    SELECT s.sts, s.fences INTO sts, fences FROM tique.sts_for(client) AS s;
    -- After sts, so that no privilege counts that was gone before the snapshot.
    SELECT string_agg(p.id || concat(
            CASE WHEN tique.guest_may(p.place, 'SELECT') THEN 'r' END,
            CASE WHEN tique.guest_may(p.place, 'INSERT') THEN 'a' END,
            CASE WHEN tique.guest_may(p.place, 'UPDATE') THEN 'w' END,
            CASE WHEN tique.guest_may(p.place, 'DELETE') THEN 'd' END), ' ')
    INTO privileges FROM (
        SELECT t.id, to_regclass(format('%I.%I', t.schema_name, t.table_name)) AS place
        FROM tique."tables" AS t
    ) AS p;
    IF sts > after THEN
        SELECT array_agg(l.cts ORDER BY l.cts), array_agg(l.txid ORDER BY l.cts),
            string_agg(l.commits, chr(31) ORDER BY l.cts)
        INTO stamps, txids, entries FROM tique.inner_log(after) AS l;
    END IF;
END
$$;

CREATE FUNCTION tique.inner_logged(
    after bigint, OUT stamps bigint[], OUT txids bigint[], OUT entries text[]
)
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    SELECT array_agg(l.cts ORDER BY l.cts), array_agg(l.txid ORDER BY l.cts),
        array_agg(l.commits ORDER BY l.cts)
    INTO stamps, txids, entries FROM tique.inner_log(after) AS l;
END
$$;

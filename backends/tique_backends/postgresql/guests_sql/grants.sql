-- Privileges in the schema.

-- Takes away privileges that defaults have given to other roles.
CREATE FUNCTION tique.guest_deny(place regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    grantee text;
BEGIN
    FOR grantee IN SELECT DISTINCT coalesce(quote_ident(r.rolname), 'PUBLIC')
        FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
        LEFT JOIN pg_roles AS r ON r.oid = a.grantee
        WHERE c.oid = place AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s CASCADE', place, grantee);
    END LOOP;
END
$$;

DO $$
DECLARE
    denied text;
    grantee text;
BEGIN
    -- Cache tables, and FOREIGN KEYs, of a format before are readable, and stay so.
    PERFORM tique.guest_deny(c.oid) FROM pg_class AS c
    WHERE c.relnamespace = 'tique'::regnamespace AND c.relkind IN ('r', 'S', 'v')
        AND c.relname !~ '^(tique_(cache|history)_[0-9]+|foreign_keys)$';
    FOR denied, grantee IN
        SELECT p.oid::regprocedure, coalesce(quote_ident(r.rolname), 'PUBLIC')
        FROM pg_proc AS p
        CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
        LEFT JOIN pg_roles AS r ON r.oid = a.grantee
        WHERE p.pronamespace = 'tique'::regnamespace AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s CASCADE', denied, grantee);
    END LOOP;
END
$$;

-- Roles that may use the schema may call these and see that much. The number of a
-- client is the right to act for it: no other client's can be seen.
GRANT EXECUTE ON FUNCTION tique.ready(), tique.sts(), tique.cts(), tique."lambda"(),
    tique.clients(), tique.doubtful(), tique."wait"(bigint, bigint),
    tique.sts_for(bigint), tique.begin_transaction(bigint),
    tique.advance_transaction(bigint, bigint, bigint),
    tique.end_transaction(bigint, bigint), tique.finish(bigint, bigint),
    tique.abort(bigint, bigint), tique.open_locker(bigint),
    tique.close_locker(bigint, bigint), tique.interrupt_locker(bigint, bigint),
    tique.lock(bigint, bigint, boolean, bigint, bigint[]),
    tique.unlock(bigint, bigint, boolean, bigint[]), tique.expect_free(bigint[]),
    tique.guest_join(bigint),
    tique.guest_renew(bigint, bigint), tique.guest_introduce(bigint, integer, integer),
    tique.guest_leave(bigint), tique.guest_tend(), tique.guest_release(),
    tique.guest_in_time(bigint, bigint), tique.guest_disown(),
    tique.guest_committing(), tique.guest_checkpoint(bigint, bigint),
    tique.guest_fence(bigint[]), tique.guest_sweep(bigint[]), tique.guest_forget(),
    tique.guest_follow(bigint, bigint), tique.guest_log(bigint), tique.guest_logged(bigint),
    tique.guest_append(bigint, bigint, bytea, integer[], bigint[], text),
    tique.guest_barrier(bigint), tique.guest_log_bulk(bigint, bigint, bigint, text),
    tique.guest_append_staged(bigint, bigint, bigint, text[]),
    tique.guest_append_rows(bigint, bigint, bigint, anyarray),
    tique.guest_drain(bigint, bigint), tique.guest_fold(bigint, bigint, bigint),
    tique.guest_prune(double precision), tique.guest_strange(regclass)
TO PUBLIC;
GRANT SELECT ON tique.format, tique."tables", tique.outcomes, tique.fences,
    tique.aside, tique.history, tique.moments, tique.slots TO PUBLIC;
GRANT SELECT (cts, txid, committed_at) ON tique.log TO PUBLIC;
GRANT SELECT (epoch) ON tique.clients TO PUBLIC;

-- All columns but the caller's role (calls.sql).
DO $$
DECLARE
    called text;
    columns text;
BEGIN
    FOR called, columns IN
        SELECT a.attrelid::regclass, string_agg(quote_ident(a.attname), ', ')
        FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'tique'::regnamespace AND c.relkind = 'v'
            AND a.attname <> 'guest' GROUP BY a.attrelid
    LOOP
        EXECUTE format('GRANT INSERT (%1$s), SELECT (%1$s) ON %2$s TO PUBLIC', columns,
            called);
    END LOOP;
END
$$;

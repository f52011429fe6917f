-- Each function's comment says what it does, and core/sequencer.h why that holds.
-- None is granted to PUBLIC (P11): the role that installs the extension grants them.

\echo Use "CREATE EXTENSION tique" to load this file. \quit

CREATE FUNCTION @extschema@.ready()
    RETURNS boolean
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_ready';
REVOKE ALL ON FUNCTION @extschema@.ready() FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.ready() IS
    'Whether the sequencer was recovered since the server was started.';

CREATE FUNCTION @extschema@.recover(sts bigint)
    RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_recover';
REVOKE ALL ON FUNCTION @extschema@.recover(bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.recover(bigint) IS
    'Begins service behind this timestamp. Once after each start of the server, before anything else.';

CREATE FUNCTION @extschema@.join_client(milliseconds bigint)
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_join_client';
REVOKE ALL ON FUNCTION @extschema@.join_client(bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.join_client(bigint) IS
    'A new client, whose lease lasts that long: a number that nobody can guess.';

CREATE FUNCTION @extschema@.join_client(milliseconds bigint, role oid)
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_join_client_as';
REVOKE ALL ON FUNCTION @extschema@.join_client(bigint, oid) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.join_client(bigint, oid) IS
    'A new client as above, of a role that may have 1024 of them.';

CREATE FUNCTION @extschema@.renew_client(client bigint, milliseconds bigint)
    RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_renew_client';
REVOKE ALL ON FUNCTION @extschema@.renew_client(bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.renew_client(bigint, bigint) IS
    'Lets the lease of a client last that long from now on.';

CREATE FUNCTION @extschema@.leave_client(client bigint)
    RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_leave_client';
REVOKE ALL ON FUNCTION @extschema@.leave_client(bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.leave_client(bigint) IS
    'Drops a client as if its lease had run out.';

CREATE FUNCTION @extschema@.begin_transaction(client bigint, OUT txid bigint, OUT sts bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_begin_transaction';
REVOKE ALL ON FUNCTION @extschema@.begin_transaction(bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.begin_transaction(bigint) IS
    'Begins a transaction whose snapshot is at sts.';

CREATE FUNCTION @extschema@.advance_transaction(client bigint, txid bigint, sts bigint)
    RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_advance_transaction';
REVOKE ALL ON FUNCTION @extschema@.advance_transaction(bigint, bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.advance_transaction(bigint, bigint, bigint) IS
    'Moves the snapshot of a transaction forward.';

CREATE FUNCTION @extschema@.end_transaction(client bigint, txid bigint)
    RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_end_transaction';
REVOKE ALL ON FUNCTION @extschema@.end_transaction(bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.end_transaction(bigint, bigint) IS
    'Forgets the snapshot of a transaction.';

CREATE FUNCTION @extschema@.sts_for(client bigint, OUT sts bigint, OUT fences bigint[])
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_sts_for';
REVOKE ALL ON FUNCTION @extschema@.sts_for(bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.sts_for(bigint) IS
    'Up to where everything is finished, and the fenced timestamps, for a client that is still there.';

CREATE FUNCTION @extschema@.certify(client bigint, after bigint, keys bytea)
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_certify';
REVOKE ALL ON FUNCTION @extschema@.certify(bigint, bigint, bytea) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.certify(bigint, bigint, bytea) IS
    'Takes a commit timestamp, which is finished when this PostgreSQL transaction ends; or minus the timestamp that is in the way. Keys have 16 bytes each.';

CREATE FUNCTION @extschema@.next_cts(client bigint)
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_next_cts';
REVOKE ALL ON FUNCTION @extschema@.next_cts(bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.next_cts(bigint) IS
    'Takes a commit timestamp that is a barrier, for finish or abort.';

CREATE FUNCTION @extschema@.next_cts(client bigint, milliseconds bigint)
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_next_cts_within';
REVOKE ALL ON FUNCTION @extschema@.next_cts(bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.next_cts(bigint, bigint) IS
    'Takes a commit timestamp that is a barrier, for a client that has none, and is in doubt unless it is finished within that time.';

CREATE FUNCTION @extschema@.holds(client bigint, cts bigint)
    RETURNS boolean
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_holds';
REVOKE ALL ON FUNCTION @extschema@.holds(bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.holds(bigint, bigint) IS
    'Whether a timestamp of next_cts is still the client''s to finish.';

CREATE FUNCTION @extschema@.limit_transaction(milliseconds bigint)
    RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_limit_transaction';
REVOKE ALL ON FUNCTION @extschema@.limit_transaction(bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.limit_transaction(bigint) IS
    'Ends the session if this PostgreSQL transaction does not reach its COMMIT within that time.';

CREATE FUNCTION @extschema@.finish(client bigint, cts bigint)
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_finish';
REVOKE ALL ON FUNCTION @extschema@.finish(bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.finish(bigint, bigint) IS
    'Finishes a timestamp of next_cts; what sts is then.';

CREATE FUNCTION @extschema@.abort(client bigint, cts bigint)
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_abort';
REVOKE ALL ON FUNCTION @extschema@.abort(bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.abort(bigint, bigint) IS
    'Finishes a timestamp of next_cts of which nothing is there; what sts is then.';

CREATE FUNCTION @extschema@.wait(cts bigint, milliseconds bigint)
    RETURNS boolean
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_wait';
REVOKE ALL ON FUNCTION @extschema@.wait(bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.wait(bigint, bigint) IS
    'Waits until sts covers a timestamp: false when the time passed first or a doubtful timestamp is in the way.';

CREATE FUNCTION @extschema@.sts()
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_sts';
REVOKE ALL ON FUNCTION @extschema@.sts() FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.sts() IS
    'Up to here every timestamp is finished.';

CREATE FUNCTION @extschema@.cts()
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_cts';
REVOKE ALL ON FUNCTION @extschema@.cts() FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.cts() IS
    'The last timestamp that was handed out.';

CREATE FUNCTION @extschema@.lambda()
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_lambda';
REVOKE ALL ON FUNCTION @extschema@.lambda() FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.lambda() IS
    'The smallest sts of any active transaction, else sts.';

CREATE FUNCTION @extschema@.clients()
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_clients';
REVOKE ALL ON FUNCTION @extschema@.clients() FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.clients() IS
    'How many clients there are.';

CREATE FUNCTION @extschema@.active()
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_active';
REVOKE ALL ON FUNCTION @extschema@.active() FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.active() IS
    'How many transactions are active.';

CREATE FUNCTION @extschema@.keys()
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_keys';
REVOKE ALL ON FUNCTION @extschema@.keys() FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.keys() IS
    'How many keys certification remembers.';

CREATE FUNCTION @extschema@.doubtful()
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_doubtful';
REVOKE ALL ON FUNCTION @extschema@.doubtful() FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.doubtful() IS
    'The smallest timestamp whose client is gone, or 0.';

CREATE FUNCTION @extschema@.doubts(most integer)
    RETURNS bigint[]
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_doubts';
REVOKE ALL ON FUNCTION @extschema@.doubts(integer) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.doubts(integer) IS
    'The smallest timestamps whose clients are gone, that many at the most.';

CREATE FUNCTION @extschema@.forget_fences(until bigint)
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_forget_fences';
REVOKE ALL ON FUNCTION @extschema@.forget_fences(bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.forget_fences(bigint) IS
    'Drops the fences up to a timestamp, when nothing of theirs is there and no more can come; how many.';

CREATE FUNCTION @extschema@.fence(cts bigint)
    RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_fence';
REVOKE ALL ON FUNCTION @extschema@.fence(bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.fence(bigint) IS
    'Finishes a doubtful timestamp as aborted, after that was written down durably.';

CREATE FUNCTION @extschema@.open_locker(client bigint)
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_open_locker';
REVOKE ALL ON FUNCTION @extschema@.open_locker(bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.open_locker(bigint) IS
    'An owner of row locks, which go with it, or with its client.';

CREATE FUNCTION @extschema@.close_locker(client bigint, locker bigint)
    RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_close_locker';
REVOKE ALL ON FUNCTION @extschema@.close_locker(bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.close_locker(bigint, bigint) IS
    'Gives an owner''s row locks back.';

CREATE FUNCTION @extschema@.interrupt_locker(client bigint, locker bigint)
    RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_interrupt_locker';
REVOKE ALL ON FUNCTION @extschema@.interrupt_locker(bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.interrupt_locker(bigint, bigint) IS
    'Ends an owner''s wait for a row lock.';

CREATE FUNCTION @extschema@.lock(client bigint, locker bigint, shared boolean, milliseconds bigint, numbers bigint[])
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_lock';
REVOKE ALL ON FUNCTION @extschema@.lock(bigint, bigint, boolean, bigint, bigint[]) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.lock(bigint, bigint, boolean, bigint, bigint[]) IS
    'Locks as many of the first numbers as are free; how many. With a time there is one number, and it waits for it, a second at most. -18 if the wait would be a deadlock, -19 if it was interrupted, -4 if there is no such owner.';

CREATE FUNCTION @extschema@.unlock(client bigint, locker bigint, shared boolean, numbers bigint[])
    RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_unlock';
REVOKE ALL ON FUNCTION @extschema@.unlock(bigint, bigint, boolean, bigint[]) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.unlock(bigint, bigint, boolean, bigint[]) IS
    'Gives numbers back that were locked in this mode.';

CREATE FUNCTION @extschema@.expect_free(numbers bigint[])
    RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'sql_expect_free';
REVOKE ALL ON FUNCTION @extschema@.expect_free(bigint[]) FROM PUBLIC;
COMMENT ON FUNCTION @extschema@.expect_free(bigint[]) IS
    'Fails with TQ005 if one of the numbers is locked, and tells which.';

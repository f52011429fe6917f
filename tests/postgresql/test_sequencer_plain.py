"""Properties of the sequencer that is made of PL/pgSQL and tables."""

import psycopg
import pytest

from tests.postgresql.sequencers import (
    OWNER,
    REFUSED,
    certify,
    packed,
    refused,
)

FUNCTIONS = (
    "SELECT p.oid::regprocedure::text FROM pg_proc AS p "
    "WHERE p.pronamespace = 'tique'::regnamespace"
)
MANY = """
CREATE PROCEDURE tique.many(client bigint, number integer) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..number LOOP
        PERFORM tique.certify(client, tique.sts(), uuid_send(gen_random_uuid()));
        COMMIT;
    END LOOP;
END
$$
"""


@pytest.fixture
def installed(plain):
    return plain


@pytest.fixture
def client(service):
    return service.join()


@pytest.fixture
def many(service):
    service.main.execute(MANY)
    yield lambda client, number: service.main.execute(
        "CALL tique.many(%s, %s)", client, number
    )
    service.main.execute("DROP PROCEDURE tique.many")


@pytest.fixture
def stranger(service):
    with psycopg.connect(service.form.url(), autocommit=True) as admin:
        password = service.form.cluster.password
        admin.execute(f"CREATE ROLE stranger LOGIN PASSWORD '{password}'")
        yield service.connect("stranger")
        for caller in service.callers[1:]:
            caller.connection.close()
        admin.execute("DROP OWNED BY stranger")
        admin.execute("DROP ROLE stranger")


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_snapshots_that_are_older_than_the_mutex_are_refused(service, client, level):
    """P3: certification would not see the commits since."""
    main = service.main
    for call in (
        lambda: service.commit(client, 1),
        lambda: main.next_cts(client),
        lambda: main.begin_transaction(client),
        lambda: main.recover(5000),
    ):
        main.execute(f"BEGIN ISOLATION LEVEL {level}")
        error = refused(REFUSED, call)
        assert "READ COMMITTED" in str(error)
        main.execute("ROLLBACK")


def test_keys_are_forgotten_and_covered_by_the_barrier(service, client, many):
    """P3, P6: the memory is bounded, and a client that is behind has to follow."""
    many(client, 2300)
    assert 2048 <= service.main.keys() < 2048 + 64 + 1
    (steps,) = service.main.execute(
        "SELECT count(*) FROM tique.sequencer_steps"
    ).fetchone()
    assert steps < 2048 + 64 + 2
    sts = service.main.sts()
    winner = -service.commit(client, 1, after=service.base)
    assert sts - 2048 - 64 <= winner <= sts - 2048
    assert service.commit(client, 1, after=winner) == sts + 1


def test_a_very_large_write_set_is_a_barrier(service, client):
    """P3."""
    cts = service.commit(client, *range(16385))
    assert service.main.sts() == cts
    assert service.commit(client, 20000, after=service.base) == -cts
    assert service.commit(client, 1, after=cts) == cts + 1


def test_a_transaction_that_was_left_open_slows_nothing_down(service, client, many):
    """P6: rows that cannot be vacuumed are not looked at."""

    def buffers():
        (plan,) = service.main.execute(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
            f"SELECT tique.certify({client}, tique.sts(), ''::bytea)"
        ).fetchone()
        return plan[0]["Plan"]["Shared Hit Blocks"]

    many(client, 10)
    before = buffers()
    old = service.connect()
    old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    old.execute("SELECT count(*) FROM tique.sequencer_steps")
    many(client, 4000)
    assert buffers() < 3 * before + 20


def test_an_ordinary_role_may_do_what_it_was_granted(service, client, stranger):
    """P11."""
    found = service.main.execute(
        "SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication "
        "FROM pg_roles WHERE rolname = %s",
        OWNER,
    )
    assert found.fetchone() == (False,)
    functions = service.main.execute(FUNCTIONS).fetchall()
    assert len(functions) > 20
    for user in ("", "GRANT USAGE ON SCHEMA tique TO stranger"):
        if user:
            service.main.execute(user)
        for call in (
            lambda: certify(stranger, client, 1, after=service.base),
            lambda: stranger.fence(1),
            lambda: stranger.recover(5000),
            lambda: stranger.execute("SELECT * FROM tique.sequencer_leases"),
            lambda: stranger.execute("DELETE FROM tique.sequencer_steps"),
            lambda: stranger.execute(
                "DO 'BEGIN LOCK TABLE tique.sequencer_mutex IN SHARE MODE; END'"
            ),
            lambda: stranger.execute("SELECT nextval('tique.sequencer_txids')"),
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                call()
    for (function,) in functions:
        found = service.main.execute(
            "SELECT has_function_privilege('stranger', %s, 'EXECUTE')", function
        )
        assert found.fetchone() == (False,)
    granted = "tique.certify(bigint, bigint, bytea), tique.sts_for(bigint)"
    service.main.execute(f"GRANT EXECUTE ON FUNCTION {granted} TO stranger")
    cts = stranger.certify(client, service.base, packed(1))
    assert stranger.sts_for(client) == cts
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.finish(client, cts)


def test_nobody_can_put_his_own_operators_before_the_servers(service, client, stranger):
    """P11."""
    name = service.form.database
    with psycopg.connect(service.form.url(), autocommit=True) as admin:
        admin.execute(f"GRANT CREATE ON DATABASE {name} TO stranger")
    stranger.execute("CREATE SCHEMA evil")
    stranger.execute("GRANT USAGE ON SCHEMA evil TO PUBLIC")
    stranger.execute(
        "CREATE FUNCTION evil.never(bigint, bigint) RETURNS boolean LANGUAGE plpgsql "
        "AS $$ BEGIN RAISE 'called by %', current_user; END $$"
    )
    for operator in ("=", ">", "<=", "+"):
        stranger.execute(
            f"CREATE OPERATOR evil.{operator} "
            "(FUNCTION = evil.never, LEFTARG = bigint, RIGHTARG = bigint)"
        )
    stranger.execute("CREATE TEMPORARY TABLE sequencer_steps (cts bigint)")
    stranger.execute("SET search_path = evil, pg_temp, pg_catalog")
    with pytest.raises(psycopg.errors.RaiseException, match="called by stranger"):
        stranger.execute("SELECT 1::bigint = 1::bigint")
    service.main.execute("GRANT USAGE ON SCHEMA tique TO stranger")
    service.main.execute("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tique TO stranger")
    assert certify(stranger, client, 1, after=service.base) == service.base + 1
    barrier = stranger.next_cts(client)
    assert stranger.finish(client, barrier) == stranger.stable() == barrier
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.execute("SELECT tique.sequencer_expire('wait')")

"""P11: the same between the owner's process and those of an ordinary role."""

from __future__ import annotations

import pytest

import tique
from tests.plugins.engine import PlainPostgreSQL, PostgreSQL, label
from tests.sharing import test_bulk_writes, test_own_types, test_sharing
from tests.sharing.playing import Process
from tests.sharing.test_own_types import kind
from tests.sharing.test_staged_locks import TYPES

__all__ = ["kind"]


@pytest.fixture(params=[PostgreSQL, PlainPostgreSQL], ids=label)
def shared_engine(request):
    opened = request.param.fresh(request)
    yield opened
    opened.close()


@pytest.fixture
def process(shared_engine):
    """The first is the owner's."""
    started = []

    def start(**options):
        if not started:
            started.append(Process(shared_engine.url, **options))
            let_in(shared_engine)
        else:
            url = shared_engine.url.replace("//tique:", "//ordinary:")
            started.append(Process(url, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()
    shared_engine.begin_again()
    natively(shared_engine, "DROP OWNED BY ordinary", "DROP ROLE ordinary")


def let_in(engine):
    natively(
        engine,
        f"CREATE ROLE ordinary LOGIN PASSWORD '{engine._cluster.password}'",
        "GRANT USAGE ON SCHEMA tique, public TO ordinary",
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO ordinary",
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO ordinary",
    )


def natively(engine, *statements):
    connection = engine._connect_natively()
    for sql in statements:
        connection.execute(sql)
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_rows_wait_for_no_other_rows(process, name):
    """P6: a commit of a role, also of rows that are staged for their types."""
    owner = process()
    types, value = TYPES[name]
    for statement in types.split("; "):
        owner.commit(statement)
    owner.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v x)")
    owner.commit(f"INSERT INTO t SELECT n, {value} FROM generate_series(1, 4) AS n")
    guests = process(lock_timeout=0.5), process(lock_timeout=0.5)
    held = (owner, *guests)
    for number, each in enumerate(held, 1):
        each.run("SELECT v FROM t WHERE id = %s FOR UPDATE", [number])
    writer = process(lock_timeout=0.5)
    writer.commit(f"INSERT INTO t SELECT 10, {value}")
    writer.commit("UPDATE t SET v = NULL WHERE id = 4")
    for number, each in enumerate(held, 1):
        each.run("UPDATE t SET v = NULL WHERE id = %s", [number])
    writer.run("UPDATE t SET v = NULL WHERE id = 2")
    with pytest.raises(tique.OperationalError) as refused:
        writer.connection.commit()
    assert refused.value.sqlstate == "55P03"
    writer.connection.rollback()
    for each in held:
        each.connection.commit()
    assert writer.rows("SELECT count(*), count(v) FROM t") == [(5, 1)]


for module in (test_sharing, test_bulk_writes, test_own_types):
    globals().update(
        {name: body for name, body in vars(module).items() if name.startswith("test_")}
    )

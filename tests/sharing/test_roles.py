"""P11: the same between the owner's process and those of an ordinary role."""

from __future__ import annotations

import pytest

from tests.plugins.engine import PlainPostgreSQL, PostgreSQL, label
from tests.sharing import test_bulk_writes, test_sharing
from tests.sharing.playing import Process


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
    )


def natively(engine, *statements):
    connection = engine._connect_natively()
    for sql in statements:
        connection.execute(sql)
    connection.close()


for module in (test_sharing, test_bulk_writes):
    globals().update(
        {name: body for name, body in vars(module).items() if name.startswith("test_")}
    )

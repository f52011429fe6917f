"""The shop of ``examples/``: one code on every engine, with many clients at once (P1, P3, P9)."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import sessionmaker

from examples.shop import runner
from examples.shop.audit import faults
from examples.shop.database import check, downgrade, open_engine, upgrade
from examples.shop.models import Customer, Line, Order, Payment, Product, Status
from examples.shop.work import STOCK, fill
from tests.effort import effort
from tique.sqlalchemy import retrying

ROOT = Path(__file__).parent.parent.parent


def test_many_clients(url):
    report = runner.run(url, threads=4, seconds=effort(1, 10))
    assert report.faults == []
    assert report.committed > 0
    assert "all" in list(report.lines())[-1]


def test_the_same_code_without_tique(postgresql_cluster, engine_of_cluster):
    report = runner.run(engine_of_cluster, threads=4, seconds=effort(0.5, 10))
    assert report.faults == []


@pytest.fixture
def engine_of_cluster(postgresql_cluster):
    from tests.plugins.postgresql import empty

    empty(postgresql_cluster.socket_url)
    return postgresql_cluster.socket_url.replace("://", "+psycopg://", 1)


def test_the_command(tmp_path):
    file = tmp_path / "shop.duckdb"
    command = ["-m", "examples.shop", "--url", f"duckdb+tique:///{file}"]
    short = ["--threads", "2", "--seconds", "0"]
    done = subprocess.run(
        [sys.executable, *command, *short],
        cwd=ROOT,
        check=True,
        text=True,
        capture_output=True,
    )
    assert "No update is lost" in done.stdout
    again = subprocess.run(
        [sys.executable, *command, *short], cwd=ROOT, text=True, capture_output=True
    )
    assert again.returncode == 1
    assert "give an empty database" in again.stderr


def test_migrations_go_up_and_down_and_leave_no_difference(url):
    engine = open_engine(url)
    try:
        upgrade(engine, "0001")
        with engine.begin() as connection:
            connection.execute(
                sa.text("INSERT INTO customer (id, email, balance) VALUES (1, 'a', 5)")
            )
        upgrade(engine)
        check(engine)
        downgrade(engine, "0001")
        with engine.connect() as connection:
            rows = connection.execute(sa.text("SELECT email, balance FROM customer"))
            assert rows.all() == [("a", Decimal(5))]
        downgrade(engine)
        assert sa.inspect(engine).get_table_names() == ["alembic_version"]
        upgrade(engine)
        check(engine)
    finally:
        engine.dispose()


@pytest.fixture
def shop(url):
    engine = open_engine(url)
    upgrade(engine)
    sessions = sessionmaker(engine)
    yield sessions, retrying(sessions)(fill)
    engine.dispose()


@pytest.mark.written_for(["duckdb"], reason="the audit is the same on every engine")
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE customer SET balance = balance + 1 WHERE id = 1", "customer 1 has"),
        ("UPDATE product SET stock = stock - 1 WHERE id = 2", "product 2"),
        ("UPDATE till SET taken = 3 WHERE id = 1", "in the tills"),
        ("DELETE FROM customer WHERE id = 1", "differ"),
        (
            "INSERT INTO customer_order (customer_id, status, total, version) "
            "VALUES (1, 'placed', 3, 1)",
            "1 orders, where 0",
        ),
    ],
)
def test_the_audit_finds(shop, change, fault):
    sessions, known = shop
    with sessions() as session:
        assert faults(session, known) == []
        session.execute(sa.text(change))
        assert fault in "; ".join(faults(session, known))


def test_cascades_of_the_orm_and_of_the_database(shop):
    sessions, known = shop
    with sessions.begin() as session:
        customer = session.get_one(Customer, known.customers[0])
        product = session.get_one(Product, known.products[0])
        for _ in range(2):
            line = Line(number=1, product=product, quantity=2, price=Decimal(1))
            payment = Payment(amount=Decimal(2))
            customer.orders.append(
                Order(
                    status=Status.PAID,
                    total=Decimal(2),
                    lines=[line],
                    payments=[payment],
                )
            )
        product.stock -= 4
    with sessions.begin() as session:
        first, second = session.get_one(Customer, known.customers[0]).orders
        assert (first.version, first.lines[0].product.stock) == (1, STOCK - 4)
        assert first.placed_at is not None
        session.delete(first)
        session.flush()
        session.execute(sa.delete(Order).where(Order.id == second.id))
    with sessions() as session:
        for table in (Order, Line, Payment):
            assert session.scalars(sa.select(table)).all() == []

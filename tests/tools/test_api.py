"""The web service of ``examples/``: FastAPI and SQLModel, with a pool (P1, P3)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from fastapi.testclient import TestClient

from examples.api.app import application


@pytest.fixture
def client(url):
    with TestClient(application(url, pool_size=4)) as client:
        yield client


def balance(client, key):
    return Decimal(client.get(f"/accounts/{key}").json()["balance"])


def test_money_moves(client):
    keys = [
        client.post("/accounts", json={"owner": owner, "balance": "10.50"}).json()["id"]
        for owner in ("Ada", "Bob")
    ]
    source, target = keys
    order = {"source": source, "target": target, "amount": "4.25"}
    made = client.post("/transfers", json=order)
    assert (made.status_code, made.json()["amount"]) == (201, "4.25")
    assert [balance(client, key) for key in keys] == [Decimal("6.25"), Decimal("14.75")]
    refused = client.post("/transfers", json={**order, "amount": "6.26"})
    assert (refused.status_code, balance(client, source)) == (409, Decimal("6.25"))
    assert client.post("/transfers", json={**order, "target": 99}).status_code == 404
    assert client.post("/transfers", json={**order, "amount": "0"}).status_code == 422


def test_many_requests_at_once(client):
    """More requests than the pool has connections, all to two hot rows."""
    one, other = (
        client.post("/accounts", json={"owner": "x", "balance": "100"}).json()["id"]
        for _ in range(2)
    )

    def send(number):
        source, target = (one, other) if number % 3 else (other, one)
        order = {"source": source, "target": target, "amount": "1"}
        return client.post("/transfers", json=order).status_code

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(send, range(30))) == {201}
    assert (balance(client, one), balance(client, other)) == (90, 110)
    assert Decimal(client.get("/total").json()["total"]) == 200

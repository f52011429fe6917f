"""The dashboard of ``examples/``: figures of a replica beside writers, in a browser (P1)."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.request

import pytest
from fastapi.testclient import TestClient

from examples.dashboard.app import application
from tests.plugins.postgresql import empty

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture
def app(postgresql_cluster, tmp_path):
    empty(postgresql_cluster.url)
    return application(postgresql_cluster.url, f"duckdb:///{tmp_path}/replica.duckdb")


def sales(figures):
    return sum(each["sales"] for each in figures["products"])


@pytest.mark.slow
def test_figures_are_never_torn(app):
    """P1: a sale and its product's count are of one commit, in every answer."""
    with TestClient(app) as client:
        answers = [client.get("/figures").json()]
        end = time.monotonic() + 30
        while sales(answers[-1]) < 50 and time.monotonic() < end:
            answers.append(client.get("/figures").json())
    assert sales(answers[-1]) >= 50
    assert {answer["difference"] for answer in answers} == {0}
    counts = [sales(answer) for answer in answers]
    assert counts == sorted(counts)
    assert answers[-1]["state"] == "following"
    assert answers[-1]["rates"]


@pytest.fixture
def address(app):
    """Where a browser finds the page."""
    uvicorn = pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app, log_level="warning", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


def figures_at(address):
    with urllib.request.urlopen(f"{address}figures") as answer:
        return json.load(answer)


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (make system)")
def test_the_page_in_a_browser(address, tmp_path):
    # The browser's clock runs ahead while it waits for nothing.
    end = time.monotonic() + 60
    while len(figures_at(address)["rates"]) < 3 and time.monotonic() < end:
        time.sleep(0.2)
    shown = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={tmp_path}/profile",
            "--virtual-time-budget=4000",
            "--dump-dom",
            address,
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    updates = re.search(r'data-updates="(\d+)"', shown)
    assert updates, shown
    assert int(updates[1]) >= 2
    (count,) = re.findall(r'id="sales">(\d+)<', shown)
    assert int(count) > 0
    assert 'id="difference">0<' in shown
    assert shown.count("<rect") == 5
    assert re.search(r'<polyline points="\d', shown)
    assert "following" in shown

"""Runs of numbered episodes in child processes, on databases of their own."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.differential.statements import STEPS
from tests.fuzz import runs
from tests.plugins.postgresql import private_cluster
from tique_backends.monetdb.server import MonetDBServer


@contextmanager
def places_of(engine):
    """Databases of the run's own: tells what a child needs to open them.

    There is one for tique, one for the bare engine, and a PostgreSQL for FOREIGN KEY.
    """
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="tique-diff-"))
        )
        places = {"duckdb": str(folder), "bare duckdb": ""}
        cluster = stack.enter_context(
            private_cluster(dynamic_shared_memory_type="mmap")
        )
        places["postgresql"] = places["bare postgresql"] = cluster.socket_url
        servers = {}
        if engine == "monetdb":
            for name in ("monetdb", "bare monetdb"):
                servers[name] = stack.enter_context(
                    MonetDBServer(folder / name.replace(" ", "-"))
                )

        def place():
            now = {name: runs.revived(server) for name, server in servers.items()}
            return json.dumps(places | now)

        yield place


def run(engine, place, seed, start, statements, *, length=STEPS, report=None):
    """Run as many episodes of a length as have this number of statements."""
    stop = start + max(1, statements // length)

    def described(engine, seed, number):
        """An episode that a child died of."""
        return {"seed": seed, "number": number, "length": length}

    return runs.run(
        engine,
        place,
        seed,
        start,
        stop,
        report=report,
        module="tests.differential.child",
        describe=described,
        options=(str(length),),
    )

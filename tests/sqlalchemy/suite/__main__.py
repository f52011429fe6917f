"""SQLAlchemy's dialect suite for one engine: ``python -m tests.sqlalchemy.suite duckdb``.

Arguments after the engine's name are pytest's. The servers and files are the process's own.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tique
from tests.plugins.engine import MonetDBServer
from tests.plugins.monetdb import connect_natively, small_files
from tests.plugins.postgresql import private_cluster
from tests.sqlalchemy.suite import requirements

if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE = Path(__file__).parent


@contextmanager
def _database(engine: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="tique-sqlalchemy-") as folder:
        if engine == "duckdb":
            yield f"duckdb:///{folder}/suite.duckdb"
        elif engine == "monetdb":
            with ExitStack() as stack:
                server = MonetDBServer(Path(folder) / "server")
                with small_files():
                    stack.enter_context(server)
                # MonetDB's own relations, such as "users", are in the usual one.
                with closing(connect_natively(server.url)) as native:
                    native.execute("CREATE SCHEMA app")
                    native.execute('ALTER USER "monetdb" SET SCHEMA app')
                yield server.url
        else:
            with private_cluster(dynamic_shared_memory_type="mmap") as cluster:
                yield cluster.socket_url


def main(engine: str, *arguments: str) -> int:
    """Run the suite; return pytest's exit status.

    The suite is not about leases: a machine that stands still for a while fails nothing.
    """
    requirements.Requirements = requirements.OF_ENGINES[engine]
    with (
        _database(engine) as url,
        closing(tique.connect(url, autocommit=True, lease=60.0)) as keeper,
    ):
        # This connection stays open, so that no engine is opened anew for each test.
        for schema in ("test_schema", "test_schema_2"):
            keeper.execute(f"CREATE SCHEMA {schema}")
        status = pytest.main(
            [
                "-c",
                str(_HERE / "setup.cfg"),
                f"--rootdir={_HERE}",
                f"--confcutdir={_HERE}",
                "--dburi",
                url.replace("://", "+tique://", 1),
                *arguments,
                str(_HERE / "test_suite.py"),
            ]
        )
        verdict = f"ended with {status!r}" if status else "passed"
        print(f"SQLAlchemy's suite on {engine} {verdict}")
        return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

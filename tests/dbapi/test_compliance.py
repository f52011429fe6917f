"""The tests of PEP 249 from PyPI (``dbapi-compliance``), on every engine."""

from __future__ import annotations

from types import MappingProxyType

import dbapi20
import pytest

import tique

pytestmark = pytest.mark.fresh_tables


class Compliance(dbapi20.DatabaseAPI20Test):
    """The suite, with what it asks drivers to add."""

    __test__ = False
    driver = tique
    # It creates tables after uncommitted writes.
    connect_kw_args = MappingProxyType({"transactional_ddl": True})

    def test_nextset(self):
        """Several results are those of ``executemany``: the suite has none of its own."""
        connection = self._connect()
        try:
            cursor = connection.cursor()
            self.executeDDL1(cursor)
            insert = f"{self.insert} into {self.table_prefix}booze values (%s)"
            cursor.executemany(
                f"{insert} returning name", [("a",), ("b",)], returning=True
            )
            assert cursor.fetchall() == [("a",)]
            assert cursor.nextset()
            assert cursor.fetchall() == [("b",)]
            assert cursor.nextset() is None
        finally:
            connection.close()

    def test_setoutputsize(self):
        """It may do nothing, and does: values have any size."""
        connection = self._connect()
        try:
            cursor = connection.cursor()
            cursor.setoutputsize(1)
            self.executeDDL1(cursor)
            cursor.execute(
                f"{self.insert} into {self.table_prefix}booze values ('long')"
            )
            cursor.execute(f"select name from {self.table_prefix}booze")
            assert cursor.fetchall() == [("long",)]
        finally:
            connection.close()

    def test_non_idempotent_close(self):
        """A second close() does nothing here.

        The suite itself calls its own test doubtful; psycopg and sqlite3 do as we do.
        """
        connection = self._connect()
        connection.close()
        connection.close()
        with pytest.raises(tique.InterfaceError, match="closed"):
            connection.cursor()


NAMES = sorted(name for name in dir(Compliance) if name.startswith("test_"))


def test_the_suite_is_there():
    assert len(NAMES) >= 36


@pytest.mark.parametrize("name", NAMES)
def test_pep_249(engine, name):
    case = Compliance(name)
    case.connect_args = (engine.url,)
    # They keep the database open between the tests.
    engine.connect()
    case.setUp()
    try:
        getattr(case, name)()
    finally:
        case.tearDown()

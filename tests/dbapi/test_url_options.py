"""Options of a URL are obeyed, or refused by name (P12)."""

from __future__ import annotations

import duckdb
import pytest

import tique
from tique_backends.duckdb.sessions.settings import RULES

DUCKDB = pytest.mark.written_for(["duckdb"], reason="its settings")
MONETDB = pytest.mark.written_for(["monetdb"], reason="its options")

MEANING = {
    "default_null_order": "nulls_first",
    "default_order": "desc",
    "default_collation": "nocase",
    "integer_division": "true",
    "search_path": "other",
    "schema": "other",
    "errors_as_json": "true",
    "wal_autocheckpoint": "1KB",
    "calendar": "japanese",
    "threads": "5000",
}


@DUCKDB
@pytest.mark.parametrize("name", MEANING)
def test_what_would_change_a_statements_meaning_is_refused(engine, name):
    for written in (name, name.upper()):
        with pytest.raises(tique.NotSupportedError, match=name):
            tique.connect(f"{engine.url}?{written}={MEANING[name]}")
    assert not engine.path.exists()


@DUCKDB
def test_every_setting_of_duckdb(engine):
    """Each is refused, or taken: then a new connection has it."""
    with duckdb.connect() as native:
        settings = native.execute(
            "SELECT name, value FROM duckdb_settings() WHERE value IS NOT NULL"
        ).fetchall()
    taken = refused = 0
    for name, value in settings:
        url = f"duckdb:///:memory:?{name}={value.replace('%', '%25')}"
        try:
            tique.connect(url).close()
        except tique.NotSupportedError as error:
            refused += RULES.name(name.lower()) in str(error)
        except tique.Error:
            # DuckDB itself does not take it there, or so written.
            pass
        else:
            taken += 1
    assert taken > 40
    assert refused > 20


@DUCKDB
def test_what_is_taken_is_obeyed(engine):
    url = f"{engine.url}?threads=1&memory_limit=1GB&enable_external_access=false"
    with tique.connect(url) as connection:
        found = connection.execute(
            "SELECT current_setting('threads'), current_setting('memory_limit'), "
            "current_setting('enable_external_access')"
        )
        assert found.fetchall() == [(1, "953.6 MiB", False)]


@MONETDB
@pytest.mark.parametrize(
    "option", ["autocommit", "timezone", "schema", "replysize", "language", "tls"]
)
def test_monetdb_takes_no_option_in_silence(engine, option):
    sign = "&" if "?" in engine.url else "?"
    with pytest.raises(tique.ProgrammingError, match=option):
        tique.connect(f"{engine.url}{sign}{option}=1")

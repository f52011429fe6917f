"""Every code block of ``docs/`` and of ``README.md`` runs, or says why it does not."""

from __future__ import annotations

import click
import pytest

from tests.docs.blocks import PAGES, BlockError, blocks
from tests.docs.session import Session, commands, parse, statements
from tests.plugins.monetdb import empty as empty_monetdb
from tests.plugins.postgresql import empty as empty_postgresql
from tique.database import settings


def blocks_of(page):
    return blocks(page, PAGES[page].read_text())


def pages_of(engine):
    """The pages with blocks that run on an engine."""
    found = []
    for page in PAGES:
        try:
            runs = any(
                block.runs and engine in block.engines for block in blocks_of(page)
            )
        except BlockError:
            # The page's own test shows it.
            continue
        if runs:
            found.append(page)
    return found


def run(page, engine, url):
    session = Session(engine, url)
    try:
        for block in blocks_of(page):
            if block.runs and engine in block.engines:
                session.run(block)
    finally:
        session.close()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Files of a page's blocks are in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    # Else even small tables are read in uncommitted folds (plugins/uncommitted.py).
    monkeypatch.setattr(settings, "_FOLD_ROWS", 50_000)
    # (plugins/long_snapshots.py)
    monkeypatch.setattr(settings, "_LONG_SNAPSHOT", 1.0)


@pytest.mark.slow
@pytest.mark.one_duckdb
@pytest.mark.parametrize("page", pages_of("duckdb"))
def test_on_duckdb(page):
    run(page, "duckdb", "duckdb:///shop.duckdb")


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_of("postgresql"))
def test_on_postgresql(page, postgresql_cluster):
    empty_postgresql(postgresql_cluster.url)
    run(page, "postgresql", postgresql_cluster.url)


@pytest.mark.parametrize("page", pages_of("monetdb"))
def test_on_monetdb(page, monetdb_server):
    empty_monetdb(monetdb_server.url)
    run(page, "monetdb", monetdb_server.url)


@pytest.mark.engine_free
@pytest.mark.parametrize("page", PAGES)
def test_what_does_not_run_is_right_as_far_as_it_can_be_read(page):
    for block in blocks_of(page):
        if not block.runs:
            parse(block)


PYTHON = "```python\nprint('a  b', 12.5)\n```\n"


def run_text(text):
    session = Session("duckdb", "duckdb:///shop.duckdb")
    try:
        for block in blocks("page.md", text):
            session.run(block)
    finally:
        session.close()


@pytest.mark.engine_free
def test_the_output_is_compared():
    run_text(PYTHON + "\n```text\na b 12.…\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md:1 prints"):
        run_text(PYTHON + "\n```text\na b 13.…\n```\n")


@pytest.mark.engine_free
@pytest.mark.parametrize(
    "text",
    [
        "```\nx\n```\n",
        "```ruby\nx\n```\n",
        "```text\nx\n```\n",
        PYTHON + "words\n```text\na b 12.5\n```\n",
        "```python\nx\n",
        "<!-- engine: oracle -->\n```python\nx\n```\n",
        "<!-- not run because: no -->\n```python\nx\n```\n",
        "<!-- not run: no -->\nwords\n```python\nx\n```\n",
    ],
)
def test_no_block_gets_around_the_test(text):
    with pytest.raises(BlockError, match=r"page\.md:\d: "):
        blocks("page.md", text)


@pytest.mark.engine_free
@pytest.mark.parametrize(
    "text",
    [
        "```python\nx y\n```\n",
        "```console\n$ make nothing\n```\n",
        "```console\n$ pip install 'tique[nothing]'\n```\n",
        "```console\n$ tique adopt --nothing duckdb:///shop.duckdb\n```\n",
        "```console\n$ python -m benchmarks nothing\n```\n",
    ],
)
def test_what_does_not_run_is_parsed(text):
    (block,) = blocks("page.md", "<!-- not run: a test -->\n" + text)
    assert not block.runs
    with pytest.raises((AssertionError, SyntaxError, click.ClickException)):
        parse(block)


def test_what_is_not_refused_fails():
    refused = "<!-- refused: NotSupportedError -->\n```sql\n{}\n```\n"
    run_text(refused.format("SELECT * FROM a TABLESAMPLE 5 ROWS REPEATABLE (3);"))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        run_text(refused.format("SELECT 1;"))


@pytest.mark.engine_free
def test_splitting():
    assert statements("-- a\nSELECT ';';\n\nSELECT 2; -- b\n-- c\n") == [
        "-- a\nSELECT ';'",
        "SELECT 2",
    ]
    assert commands("$ tique a \\\nb\nout\nput\n$ tique c\n") == [
        ("tique a b", "out\nput\n"),
        ("tique c", ""),
    ]

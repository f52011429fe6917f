from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tique.database.url import DatabaseURL, parse_url
from tique.errors import InterfaceError
from tique_backends import registry
from tique_backends.location import Server

pytestmark = pytest.mark.engine_free


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("duckdb:///shop.duckdb", "shop.duckdb"),
        ("duckdb:///data/shop.duckdb", "data/shop.duckdb"),
        ("duckdb:////data/shop.duckdb", "/data/shop.duckdb"),
        ("duckdb:///C:/data/shop.duckdb", "C:/data/shop.duckdb"),
        ("duckdb:///a%20b%25%3F%23.db", "a b%?#.db"),
        ("duckdb:///a+b.db", "a+b.db"),
        ("duckdb:///gr%C3%B6%C3%9Fe.db", "größe.db"),
        ("duckdb:///größe.db", "größe.db"),
        ("DuckDB:///Shop.db", "Shop.db"),
        ("duckdb:///:memory:", ":memory:"),
        ("duckdb:///", ":memory:"),
        ("duckdb://", ":memory:"),
    ],
)
def test_paths(url, path):
    parsed = parse_url(url)
    assert parsed == DatabaseURL("duckdb", path, {})
    assert parsed.in_memory == (path == ":memory:")


def test_options():
    parsed = parse_url("duckdb:///shop.db?threads=4&memory_limit=1%20GB&empty=&a=b=c")
    assert parsed.path == "shop.db"
    assert parsed.options == {
        "threads": "4",
        "memory_limit": "1 GB",
        "empty": "",
        "a": "b=c",
    }


def test_the_isolation_level_is_no_option_of_the_engines():
    for url in ("duckdb:///shop.db", "duckdb://", "duckdb:///:memory:"):
        parsed = parse_url(f"{url}?threads=4&isolation_level=READ%20COMMITTED")
        assert parsed.options == {"threads": "4"}
        assert parsed.isolation_level == "READ COMMITTED"
        assert parse_url(url).isolation_level is None


def test_plus_in_an_option_is_a_plus():
    assert parse_url("duckdb://?TimeZone=Etc/GMT+1").options == {
        "TimeZone": "Etc/GMT+1"
    }


def test_options_cannot_be_changed():
    with pytest.raises(TypeError):
        parse_url("duckdb://?threads=4").options["threads"] = "5"


@given(st.text().filter(lambda path: "\0" not in path))
def test_a_quoted_path_comes_back(path):
    encoded = quote(path)
    assert parse_url(f"duckdb:///{encoded}").path == (path or ":memory:")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("shop.duckdb", "duckdb:///relative/path"),
        ("/data/shop.duckdb", "duckdb:///relative/path"),
        (Path("/data/shop.duckdb"), "duckdb:///relative/path"),
        (":memory:", "duckdb:///:memory:"),
        ("", "duckdb:///relative/path"),
        (b"duckdb://", "bytes"),
        (None, "NoneType"),
        ("duckdb:/shop.db", "duckdb:///relative/path"),
        ("://shop.db", "duckdb:///relative/path"),
        ("oracle:///shop", "unknown backend 'oracle', known are: .*duckdb"),
        ("tique+duckdb:///shop.db", "create_engine; tique.connect takes duckdb:///"),
        ("duckdb+tique:///shop.db", "unknown backend 'duckdb\\+tique'"),
        ("duckdb://shop.db", "three slashes"),
        ("duckdb://localhost/shop.db", "three slashes"),
        ("duckdb:///100%.db", "stray '%' in the path .* %25"),
        ("duckdb:///%ff.db", "not UTF-8"),
        ("duckdb:///a%00b.db", "NUL in the path"),
        ("duckdb:///a#b.db", "%23"),
        ("duckdb:///a.db?threads", "name=value"),
        ("duckdb:///a.db?=4", "name=value"),
        ("duckdb:///a.db?threads=4&threads=5", "'threads' twice"),
        ("duckdb:///a.db?threads=%", "stray '%' in the value of option 'threads'"),
    ],
)
def test_refused(url, message):
    with pytest.raises(InterfaceError, match=message):
        parse_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "duckdb://user:secret@host/shop.db",
        "duckdb:///shop.db?password=secret%",
        "duckdb:///shop.db?secret",
        "user:secret@duckdb:///shop.db",
        "user:secret@host",
    ],
)
def test_no_message_repeats_a_password(url):
    with pytest.raises(InterfaceError) as refusal:
        parse_url(url)
    assert "secret" not in str(refusal.value)


def test_repr_keeps_option_values_to_itself():
    parsed = parse_url("duckdb:///shop.db?password=secret")
    assert repr(parsed) == "DatabaseURL(backend='duckdb', path='shop.db')"


def test_equal_urls_hash_alike():
    one, other = parse_url("duckdb:///a.db?b=1"), parse_url("DUCKDB:///a.db?b=1")
    assert one == other
    assert hash(one) == hash(other)


@pytest.fixture
def served(monkeypatch):
    """A backend with a server."""
    monkeypatch.setitem(registry._MODULES, "monetdb", "tique_backends.monetdb")


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("monetdb:///shop", Server()),
        ("monetdb://db.example/shop", Server("db.example")),
        ("monetdb://db.example:50001/shop", Server("db.example", 50001)),
        ("monetdb://[::1]:50001/shop", Server("::1", 50001)),
        ("monetdb://joe@db/shop", Server("db", None, "joe")),
        ("monetdb://joe:@db/shop", Server("db", None, "joe", "")),
        (
            "monetdb://j%40e:p%3Aa%2Fs%25s%C3%A9@127.0.0.1:1/shop",
            Server("127.0.0.1", 1, "j@e", "p:a/s%s\u00e9"),
        ),
        ("MonetDB://joe:a:b@/shop", Server(None, None, "joe", "a:b")),
        ("monetdb://joe:p@ss@db/shop", Server("db", None, "joe", "p@ss")),
    ],
)
def test_servers(served, url, server):
    parsed = parse_url(url + "?sock=/tmp/a%20b")
    assert parsed == DatabaseURL("monetdb", "shop", {"sock": "/tmp/a b"}, server)
    assert not parsed.in_memory
    assert repr(parsed) == "DatabaseURL(backend='monetdb', path='shop')"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("monetdb://joe:secret@db", "monetdb://user:password@host:port/name"),
        ("monetdb://joe:secret@db/", "names a database"),
        ("monetdb://joe:secret@db:x/shop", "%40, %3A and %2F"),
        ("monetdb://joe:secret@db:99999/shop", "between 1 and 65535"),
        ("monetdb://joe:secret@db:0/shop", "between 1 and 65535"),
        ("monetdb://joe:secret@::1/shop", "host:port"),
        ("monetdb://joe:secret%@db/shop", "stray '%' in the password"),
        ("monetdb://joe:secret%ff@db/shop", "password .* is not UTF-8"),
        ("monetdb://joe:secret@db/shop#a", "%23"),
        ("monetdb://joe:secret@db/shop?secret", "name=value"),
    ],
)
def test_servers_that_cannot_be(served, url, message):
    with pytest.raises(InterfaceError, match=message) as refusal:
        parse_url(url)
    assert "secret" not in str(refusal.value)


def test_a_file_has_no_server():
    assert parse_url("duckdb:///shop.db").server is None

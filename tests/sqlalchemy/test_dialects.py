"""The basics of Core, ORM and reflection, the same on every engine (P1, P3, P8)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
import sqlalchemy as sa
from sqlalchemy import exc, orm
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.dialects.postgresql.ranges import MultiRange, Range
from sqlalchemy.ext.compiler import compiles

import tique
from tique.sqlalchemy import retrying


class Base(orm.DeclarativeBase):
    pass


class Owner(Base):
    __tablename__ = "owner"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(20), unique=True)
    accounts: orm.Mapped[list[Account]] = orm.relationship(
        back_populates="owner", cascade="all, delete-orphan"
    )


class Account(Base):
    __tablename__ = "account"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    owner_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey("owner.id", ondelete="CASCADE")
    )
    balance: orm.Mapped[Decimal] = orm.mapped_column(sa.Numeric(12, 2), default=0)
    rate: orm.Mapped[float | None]
    owner: orm.Mapped[Owner] = orm.relationship(back_populates="accounts")


class TEXTRANGE(postgresql.ranges.AbstractSingleRange):
    """A range of texts, of the application's own."""

    __visit_name__ = "TEXTRANGE"


@compiles(TEXTRANGE)
def _text_range(element, compiler, **kw):
    return "textrange"


OWNER, ACCOUNT = Owner.__table__, Account.__table__


def url_of(engine, **options):
    return sa.make_url(engine.url.replace("://", "+tique://", 1))


@pytest.fixture
def alchemy(engine):
    made = sa.create_engine(url_of(engine))
    Base.metadata.create_all(made)
    yield made
    made.dispose()


def test_core(alchemy):
    with alchemy.begin() as connection:
        result = connection.execute(OWNER.insert(), {"name": "Ada"})
        assert result.inserted_primary_key == (1,)
        made = connection.execute(
            OWNER.insert().returning(OWNER.c.id, sort_by_parameter_order=True),
            [{"name": "Bob"}, {"name": "Cid"}],
        )
        assert made.scalars().all() == [2, 3]
        changed = connection.execute(
            OWNER.update().where(OWNER.c.id == 2).values(name="Bea")
        )
        assert changed.rowcount == 1
        gone = connection.execute(
            OWNER.delete().where(OWNER.c.name == "Cid").returning(OWNER.c.id)
        )
        assert gone.all() == [(3,)]
    with alchemy.connect() as connection:
        found = connection.execute(sa.select(OWNER).order_by(OWNER.c.id)).all()
        assert found == [(1, "Ada"), (2, "Bea")]


def test_rows_of_one_transaction_are_rolled_back_or_to_a_savepoint(alchemy):
    with alchemy.begin() as connection:
        connection.execute(OWNER.insert(), {"name": "Ada"})
        savepoint = connection.begin_nested()
        connection.execute(OWNER.insert(), {"name": "Bob"})
        with pytest.raises(exc.IntegrityError):
            connection.execute(OWNER.insert(), {"name": "Ada"})
        savepoint.rollback()
    with alchemy.connect() as connection:
        connection.execute(OWNER.insert(), {"name": "Cid"})
        connection.rollback()
        assert connection.scalars(sa.select(OWNER.c.name)).all() == ["Ada"]


def test_orm(alchemy):
    with orm.Session(alchemy) as session, session.begin():
        session.add(Owner(name="Ada", accounts=[Account(balance=5), Account(rate=0.5)]))
    with orm.Session(alchemy) as session, session.begin():
        ada = session.scalars(sa.select(Owner)).one()
        assert sorted(a.balance for a in ada.accounts) == [0, 5]
        assert {type(a.balance) for a in ada.accounts} == {Decimal}
        del ada.accounts[0]
    with orm.Session(alchemy) as session, session.begin():
        session.delete(session.get_one(Owner, 1))
    with orm.Session(alchemy) as session:
        assert session.scalars(sa.select(Account)).all() == []


def test_upsert(alchemy):
    statement = insert(OWNER).values(id=1, name="Ada")
    again = statement.on_conflict_do_update(
        index_elements=[OWNER.c.id], set_={"name": statement.excluded.name + "!"}
    )
    with alchemy.begin() as connection:
        connection.execute(again)
        connection.execute(again)
        there = insert(OWNER).values(id=1, name="Ada").on_conflict_do_nothing()
        connection.execute(there)
        assert connection.scalar(sa.select(OWNER.c.name)) == "Ada!"


def test_reflection_shows_the_application_and_nothing_else(alchemy):
    inspector = sa.inspect(alchemy)
    assert sorted(inspector.get_table_names()) == ["account", "owner"]
    assert "tique" not in inspector.get_schema_names()
    columns = inspector.get_columns("account")
    assert [c["name"] for c in columns] == ["id", "owner_id", "balance", "rate"]
    assert [c["nullable"] for c in columns] == [False, False, False, True]
    assert inspector.get_pk_constraint("account")["constrained_columns"] == ["id"]
    (unique,) = inspector.get_unique_constraints("owner")
    assert unique["column_names"] == ["name"]
    (key,) = inspector.get_foreign_keys("account")
    assert (key["referred_table"], key["referred_columns"]) == ("owner", ["id"])
    assert key["options"] == {"ondelete": "CASCADE"}
    metadata = sa.MetaData()
    metadata.reflect(alchemy)
    metadata.drop_all(alchemy)
    assert sa.inspect(alchemy).get_table_names() == []


def test_a_foreign_key_is_reflected_in_the_transaction_that_makes_it(alchemy):
    with alchemy.connect() as connection:
        connection.execute(
            sa.text("CREATE TABLE note (id INTEGER REFERENCES owner (id))")
        )
        assert len(sa.inspect(connection).get_foreign_keys("note")) == 1
        connection.rollback()
        assert "note" not in sa.inspect(connection).get_table_names()
        driver = connection.connection.driver_connection
        assert [key.table for key in driver.foreign_keys()] == ["account"]


@pytest.mark.written_for(
    ["duckdb", "monetdb"], reason="for PostgreSQL SQLAlchemy knows which to quote"
)
def test_words_of_an_engine_are_names(alchemy):
    # DuckDB's words, which are none of PostgreSQL's.
    words = "anti asof at by collation concurrently describe glob lambda lateral pivot "
    words += "pivot_longer pivot_wider positional qualify semi show summarize "
    words += "tablesample unpack unpivot"
    columns = [sa.Column(word, sa.Integer) for word in words.split()]
    table = sa.Table("pivot", sa.MetaData(), *columns)
    with alchemy.begin() as connection:
        table.create(connection)
        values = {word: number for number, word in enumerate(words.split())}
        connection.execute(table.insert(), values)
        assert connection.execute(table.select()).one()._mapping == values


LEVELS = ["SNAPSHOT", "READ COMMITTED", "SERIALIZABLE", "AUTOCOMMIT"]


@pytest.mark.parametrize("level", LEVELS)
def test_isolation_levels(alchemy, level):
    seen = []
    with (
        alchemy.connect().execution_options(isolation_level=level) as reader,
        alchemy.connect() as writer,
    ):
        assert reader.get_isolation_level() == level
        count = sa.select(sa.func.count()).select_from(OWNER)
        for number in range(2):
            seen.append(reader.scalar(count))
            writer.execute(OWNER.insert(), {"name": f"{number}"})
            writer.commit()
        if level == "AUTOCOMMIT":
            reader.execute(OWNER.insert(), {"name": "last"})
            reader.rollback()
            assert writer.scalar(count) == 3
    assert seen == ([0, 0] if level in ("SNAPSHOT", "SERIALIZABLE") else [0, 1])
    with alchemy.connect() as connection:
        assert connection.get_isolation_level() == "SNAPSHOT"
        driver = connection.connection.dbapi_connection
        assert {*connection.dialect.get_isolation_level_values(driver)} == {*LEVELS}


@pytest.mark.parametrize("level", ["READ UNCOMMITTED", "STRICT", ""])
def test_other_levels_are_refused(engine, level):
    """P10."""
    made = sa.create_engine(url_of(engine), isolation_level=level)
    with pytest.raises(exc.ArgumentError, match="isolation_level"):
        made.connect()
    made.dispose()


def test_a_pool_of_serializable_connections(engine):
    """Each of its connections has the level, also after one was given back with another."""
    made = sa.create_engine(url_of(engine), isolation_level="SERIALIZABLE", pool_size=1)
    for level in ("SERIALIZABLE", "READ COMMITTED", "AUTOCOMMIT"):
        with made.connect().execution_options(isolation_level=level) as connection:
            assert connection.get_isolation_level() == level
        with made.connect() as connection:
            assert connection.get_isolation_level() == "SERIALIZABLE"
    made.dispose()


def test_as_of(engine):
    """P1: ``tique_as_of``, of a connection, an engine and a session."""
    made = sa.create_engine(url_of(engine), connect_args={"history": "1 hour"})
    Base.metadata.create_all(made)
    with made.begin() as connection:
        connection.execute(OWNER.insert(), {"name": "Ada"})
    with made.connect() as connection:
        version = connection.connection.dbapi_connection.version
    with made.begin() as connection:
        connection.execute(OWNER.update().values(name="Eve"))
    options = {"tique_as_of": version}
    for connect in (
        lambda: made.connect().execution_options(**options),
        lambda: made.execution_options(**options).connect(),
        lambda: made.execution_options(
            isolation_level="AUTOCOMMIT", **options
        ).connect(),
    ):
        with connect() as connection:
            assert connection.scalar(sa.select(OWNER.c.name)) == "Ada"
            with pytest.raises(exc.DBAPIError, match="read-only"):
                connection.execute(OWNER.delete())
        with made.connect() as connection:
            assert connection.scalar(sa.select(OWNER.c.name)) == "Eve"
    with orm.Session(made) as session:
        session.connection(execution_options=options)
        assert session.scalars(sa.select(Owner)).one().name == "Ada"
        session.commit()
        assert session.scalars(sa.select(Owner)).one().name == "Eve"
    made.dispose()


@pytest.mark.written_for(["postgresql"], reason="SQLAlchemy's options of it")
def test_read_only_and_deferrable(alchemy):
    """P12: postgresql_readonly and postgresql_deferrable, of a connection and an engine."""
    with alchemy.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE flagged (id INTEGER PRIMARY KEY)")
    insert = sa.text("INSERT INTO flagged VALUES (1)")
    options = {"postgresql_readonly": True, "postgresql_deferrable": True}
    for connect in (
        lambda: alchemy.connect().execution_options(**options),
        lambda: alchemy.execution_options(**options).connect(),
    ):
        with connect() as connection:
            dialect = connection.dialect
            assert dialect.get_readonly(connection.connection.dbapi_connection)
            with pytest.raises(exc.DBAPIError, match="read-only") as caught:
                connection.execute(insert)
            assert caught.value.orig.sqlstate == "25006"
            connection.rollback()
        with alchemy.connect() as connection:
            driver = connection.connection.dbapi_connection
            assert not dialect.get_readonly(driver)
            # What only reads has nothing to wait for.
            assert not dialect.get_deferrable(driver)
            connection.execute(insert)
            connection.rollback()


@pytest.mark.written_for(["postgresql"], reason="SQLAlchemy's options of it")
def test_a_level_in_the_url(engine):
    """P12: SQLAlchemy's isolation_level comes before the URL's."""
    url = sa.make_url(url_of(engine)).update_query_dict(
        {"isolation_level": "READ COMMITTED"}
    )
    for options in ({}, {"isolation_level": "SNAPSHOT"}):
        made = sa.create_engine(url, **options)
        with made.connect() as connection:
            level = options.get("isolation_level", "READ COMMITTED")
            assert connection.get_isolation_level() == level
        made.dispose()


def test_repeatable_read_is_snapshot(engine):
    made = sa.create_engine(url_of(engine), isolation_level="REPEATABLE READ")
    with made.connect() as connection:
        assert connection.get_isolation_level() == "SNAPSHOT"
    with made.connect().execution_options(isolation_level="READ_COMMITTED") as other:
        assert other.get_isolation_level() == "READ COMMITTED"
    made.dispose()


def test_a_conflict_is_an_operational_error_and_runs_again(alchemy):
    sessions = orm.sessionmaker(alchemy)
    with sessions.begin() as session:
        session.add(Owner(id=1, name="0"))
    attempts = []

    def rename(session):
        owner = session.get_one(Owner, 1)
        attempts.append(owner.name)
        if len(attempts) == 1:
            with sessions.begin() as other:
                other.get_one(Owner, 1).name += "1"
        owner.name += "!"

    session = sessions()
    rename(session)
    with pytest.raises(exc.OperationalError) as caught:
        session.commit()
    session.close()
    assert isinstance(caught.value.orig, tique.SerializationError)
    attempts.clear()
    retrying(sessions)(rename)
    assert attempts == ["01", "011"]
    with sessions() as session:
        assert session.get_one(Owner, 1).name == "011!"


def test_retrying_loses_no_update(alchemy):
    sessions = orm.sessionmaker(alchemy)
    with sessions.begin() as session:
        session.add(Owner(id=1, name="A", accounts=[Account(id=1)]))

    def pay(session):
        session.get_one(Account, 1).balance += 1

    def client():
        for _ in range(5):
            retrying(sessions)(pay)

    threads = [threading.Thread(target=client) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with sessions() as session:
        assert session.get_one(Account, 1).balance == 15


def test_retrying_gives_up(alchemy):
    def fail(session):
        session.connection()
        error = tique.SerializationError("again")
        raise exc.OperationalError("", {}, error)

    with pytest.raises(exc.OperationalError):
        retrying(orm.sessionmaker(alchemy), attempts=2)(fail)
    with pytest.raises(ValueError, match="at least 1"):
        retrying(orm.sessionmaker(alchemy), attempts=0)


def test_a_point_query_needs_no_engine(alchemy):
    with orm.Session(alchemy) as session, session.begin():
        session.add(Owner(name="Ada"))
    with orm.Session(alchemy) as session:
        driver = session.connection().connection.driver_connection
        session.get_one(Owner, 1)
        before = driver.info.engine_statements
        session.expire_all()
        assert session.get_one(Owner, 1).name == "Ada"
        assert driver.info.engine_statements == before


def test_a_stream_of_results(alchemy):
    with alchemy.begin() as connection:
        connection.execute(OWNER.insert(), [{"name": f"{n}"} for n in range(50)])
    with alchemy.connect().execution_options(stream_results=True) as connection:
        names = connection.scalars(sa.select(OWNER.c.name))
        assert sum(int(name) for name in names) == sum(range(50))


def test_rows_are_locked(alchemy):
    with alchemy.begin() as connection:
        connection.execute(OWNER.insert(), [{"name": "Ada"}, {"name": "Bob"}])
    free = sa.select(OWNER.c.name).order_by(OWNER.c.id).limit(1)
    free = free.with_for_update(skip_locked=True)
    with alchemy.connect() as one, alchemy.connect() as other:
        assert one.scalar(free) == "Ada"
        assert other.scalar(free) == "Bob"
        with pytest.raises(exc.OperationalError):
            other.execute(sa.select(OWNER).with_for_update(nowait=True))


def test_a_connection_that_is_closed_is_a_disconnect(alchemy):
    with alchemy.connect() as connection:
        connection.connection.driver_connection.close()
        with pytest.raises(exc.DBAPIError) as caught:
            connection.execute(sa.select(1))
        assert caught.value.connection_invalidated
    with alchemy.connect() as connection:
        assert connection.scalar(sa.select(1)) == 1


def test_a_pool_that_asks_first_and_its_events(engine):
    made = sa.create_engine(url_of(engine), pool_pre_ping=True, pool_size=1)
    seen = []
    for name in ("connect", "checkout", "checkin", "close"):
        sa.event.listen(made, name, lambda *_, name=name: seen.append(name))
    with made.connect() as connection:
        driver = connection.connection.driver_connection
    driver.close()
    with made.connect() as connection:
        assert connection.scalar(sa.select(1)) == 1
    made.dispose()
    first, second = ["connect", "checkout", "checkin"], ["connect", "checkout"]
    assert seen == [*first, "close", *second, "checkin", "close"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "duckdb+tique:///a b/c.duckdb?threads=4",
            "duckdb:///a%20b/c.duckdb?threads=4",
        ),
        ("duckdb+tique:////tmp/c.duckdb", "duckdb:////tmp/c.duckdb"),
        ("duckdb+tique:///:memory:", "duckdb:///:memory:"),
        (
            "postgresql+tique://u:p%40%2F@[::1]:5/d?options=-c%20a%3Db+c",
            "postgresql://u:p%40%2F@[::1]:5/d?options=-c%20a%3Db%20c",
        ),
        ("monetdb+tique://monetdb@host/d", "monetdb://monetdb@host/d"),
    ],
)
@pytest.mark.engine_free
def test_urls(url, expected):
    made = sa.make_url(url)
    (text,), options = made.get_dialect()().create_connect_args(made)
    assert text == expected
    assert options == {"transactional_ddl": True}


@pytest.mark.engine_free
def test_tique_does_not_import_sqlalchemy():
    code = "import sys, tique; tique.connect; assert 'sqlalchemy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))


def test_what_monetdb_lacks_has_another_form():
    """P10: or is refused, before the engine gives it another meaning or none."""
    dialect = sa.create_engine("monetdb+tique://monetdb@host/d").dialect
    id_, spent = sa.column("id", sa.Integer), sa.column("spent", sa.JSON)

    def compiled(statement):
        return str(statement.compile(dialect=dialect))

    few = sa.select(id_).fetch(2)
    assert "LIMIT" in compiled(few)
    assert "OFFSET" in compiled(few.offset(1))
    for options in ({"with_ties": True}, {"percent": True}):
        with pytest.raises(exc.CompileError, match="neither"):
            compiled(sa.select(id_).fetch(2, **options))
    for member in (spent["a"], spent[("a", "b")]):
        with pytest.raises(exc.CompileError, match="JSON"):
            compiled(sa.select(member))


def test_spans_of_time_and_nulls_compared(alchemy):
    """P8: Interval, whatever the engine has for it, and IS DISTINCT FROM."""
    table = sa.Table(
        "span",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("lasts", sa.Interval),
    )
    spans = {1: timedelta(days=1, milliseconds=-1500), 2: timedelta(0), 3: None}
    table.create(alchemy)
    with alchemy.begin() as connection:
        rows = [{"id": n, "lasts": span} for n, span in spans.items()]
        connection.execute(table.insert(), rows)
    with alchemy.connect() as connection:
        assert dict(connection.execute(sa.select(table)).all()) == spans
        others = sa.select(table.c.id).where(table.c.lasts.is_distinct_from(spans[1]))
        assert set(connection.scalars(others)) == {2, 3}
        same = sa.select(table.c.id).where(table.c.lasts.is_not_distinct_from(None))
        assert connection.scalars(same).all() == [3]


@pytest.mark.written_for(["postgresql"], reason="others have no ranges")
def test_ranges(alchemy):
    """P8: SQLAlchemy's ranges go in and come out, and are compared."""
    table = sa.Table(
        "stay",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("rooms", postgresql.INT4RANGE),
        sa.Column("nights", postgresql.TSTZRANGE),
        sa.Column("days", postgresql.DATEMULTIRANGE),
    )
    table.create(alchemy)
    moment = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)
    days = [Range(date(2024, 5, n), date(2024, 5, n + 2)) for n in (1, 7)]
    rows = [
        (1, Range(1, 5), Range(moment, None), MultiRange(days)),
        (2, Range(empty=True), Range(None, moment), MultiRange()),
        (3, None, None, None),
        (4, Range(3, 4), Range(moment, moment, bounds="[]"), MultiRange(days[:1])),
    ]
    names = [column.name for column in table.columns]
    with alchemy.begin() as connection:
        given = [dict(zip(names, row, strict=True)) for row in rows]
        connection.execute(table.insert(), given)
        connection.execute(
            table.update().where(table.c.id == 4).values(rooms=Range(4, 6))
        )
        rows[3] = (4, Range(4, 6), *rows[3][2:])
        assert connection.execute(table.select().order_by("id")).all() == rows
    with alchemy.connect() as connection:
        assert connection.execute(table.select().order_by("id")).all() == rows
        for condition, found in (
            (table.c.rooms.contains(4), {1, 4}),
            (table.c.rooms.overlaps(Range(5, 9)), {4}),
            (table.c.rooms == Range(1, 5), {1}),
            (table.c.nights.contains(moment), {1, 4}),
            (table.c.days.contains(date(2024, 5, 8)), {1}),
        ):
            assert (
                set(connection.scalars(sa.select(table.c.id).where(condition))) == found
            )


@pytest.mark.written_for(["postgresql"], reason="others have no ranges")
def test_ranges_of_any_text(alchemy):
    """P11: a bound ends where its text does."""
    column = sa.Column("r", TEXTRANGE)
    table = sa.Table("words", sa.MetaData(), sa.Column("id", sa.Integer), column)
    with alchemy.begin() as connection:
        connection.execute(sa.text("CREATE TYPE textrange AS RANGE (subtype = text)"))
    table.create(alchemy)
    bounds = Range('a",b)\\', 'c"d\\e', bounds="[]")
    with alchemy.begin() as connection:
        connection.execute(table.insert(), [{"id": 1, "r": bounds}])
        query = sa.text("SELECT lower(r), upper(r) FROM words")
        assert connection.execute(query).all() == [(bounds.lower, bounds.upper)]


@pytest.mark.slow
def test_a_key_of_a_table_in_the_default_schema(alchemy):
    """As SQLAlchemy's own dialects tell it: without that schema's name."""
    metadata = sa.MetaData()
    sa.Table("parent", metadata, sa.Column("id", sa.Integer, primary_key=True))
    for schema, name in (("side", "aunt"), (None, "child"), ("side", "cousin")):
        sa.Table(
            name,
            metadata,
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("parent", sa.ForeignKey("parent.id")),
            *(
                [sa.Column("aunt", sa.ForeignKey("side.aunt.id"))]
                if name != "aunt"
                else []
            ),
            schema=schema,
        )
    with alchemy.begin() as connection:
        connection.execute(sa.schema.CreateSchema("side"))
    metadata.create_all(alchemy)
    inspector = sa.inspect(alchemy)
    for schema, name in ((None, "child"), ("side", "cousin")):
        keys = inspector.get_foreign_keys(name, schema=schema)
        found = {key["referred_table"]: key["referred_schema"] for key in keys}
        assert found == {"parent": None, "aunt": "side"}
    again = sa.MetaData()
    sa.Table("cousin", again, autoload_with=alchemy, schema="side")
    assert set(again.tables) == {"parent", "side.aunt", "side.cousin"}
    metadata.drop_all(alchemy)


@pytest.mark.slow
def test_what_is_reflected_can_be_made_again(alchemy):
    """P9: the constraints of the copy hold."""
    made = sa.Table(
        "pair",
        sa.MetaData(),
        sa.Column("a", sa.Integer),
        sa.Column("b", sa.Integer),
        sa.Column("lasts", sa.Interval),
        sa.UniqueConstraint("a", "b", name="both"),
    )
    made.create(alchemy)
    reflected = sa.MetaData()
    reflected.reflect(alchemy)
    reflected.drop_all(alchemy)
    reflected.create_all(alchemy)
    pair = reflected.tables["pair"]
    with alchemy.begin() as connection:
        made_keys = connection.execute(
            reflected.tables["owner"].insert(), {"name": "x"}
        )
        assert made_keys.inserted_primary_key == (1,)
    rows = [(1, None, None), (1, None, None), (1, 1, timedelta(days=40, seconds=1.5))]
    with alchemy.begin() as connection:
        connection.execute(pair.insert().values(rows))
        assert sorted(connection.execute(pair.select()), key=str) == sorted(
            rows, key=str
        )
    with alchemy.connect() as connection, pytest.raises(exc.IntegrityError):
        connection.execute(pair.insert(), {"a": 1, "b": 1})


@pytest.mark.written_for(["monetdb"], reason="it has types for the fields of intervals")
def test_intervals_are_reflected_with_their_fields(alchemy):
    fields = [
        "YEAR",
        "YEAR TO MONTH",
        "MONTH",
        "DAY",
        "DAY TO SECOND",
        "HOUR",
        "SECOND",
    ]
    columns = ", ".join(f"c{n} INTERVAL {field}" for n, field in enumerate(fields))
    with alchemy.begin() as connection:
        connection.execute(sa.text(f"CREATE TABLE t ({columns})"))
    for _ in range(2):
        metadata = sa.MetaData()
        table = sa.Table("t", metadata, autoload_with=alchemy)
        assert [column.type.fields for column in table.columns] == fields
        metadata.drop_all(alchemy)
        metadata.create_all(alchemy)


@pytest.mark.written_for(["duckdb", "postgresql"], reason="MonetDB has no arrays")
def test_arrays_are_compared(alchemy):
    """P8: a list is of its column's type, and not of its elements' smallest one."""
    table = sa.Table(
        "bag",
        sa.MetaData(),
        sa.Column("few", ARRAY(sa.Integer)),
        sa.Column("many", ARRAY(sa.BigInteger)),
        sa.Column("texts", ARRAY(sa.String(9))),
    )
    table.create(alchemy)
    row = {"few": [1, 2], "many": [3], "texts": ["a"]}
    with alchemy.begin() as connection:
        connection.execute(table.insert(), row)
        for name, value in row.items():
            column = table.c[name]
            count = sa.select(sa.func.count()).where(column == value, column >= value)
            assert connection.scalar(count) == 1
            assert connection.scalar(count.where(column != value)) == 0


def test_upsert_of_a_named_constraint(alchemy):
    """P8: its columns are in the metadata, where the engine has no names of keys."""
    table = sa.Table(
        "pair",
        sa.MetaData(),
        sa.Column("id", sa.Integer, autoincrement=False),
        sa.Column("a", sa.Integer),
        sa.Column("In", sa.Integer, key="inside"),
        sa.Column("seen", sa.Integer, default=0),
        sa.PrimaryKeyConstraint("id", name="pair_key"),
        both := sa.UniqueConstraint("a", "inside", name="both"),
    )
    table.create(alchemy)

    def upsert(key, **row):
        statement = insert(table).values(**row)
        return statement.on_conflict_do_update(
            constraint=key, set_={"seen": table.c.seen + 1}
        )

    with alchemy.begin() as connection:
        connection.execute(upsert("both", id=1, a=2, inside=3))
        connection.execute(upsert("both", id=4, a=2, inside=3))
        connection.execute(upsert(both, id=5, a=2, inside=3))
        connection.execute(upsert("pair_key", id=1, a=6, inside=7))
        connection.execute(upsert(table.primary_key, id=1, a=8, inside=9))
        other = insert(table).values(id=10, a=2, inside=3)
        connection.execute(other.on_conflict_do_nothing(constraint="both"))
        assert connection.execute(table.select()).all() == [(1, 2, 3, 4)]
    refusals = (exc.CompileError, exc.ProgrammingError)
    with alchemy.connect() as connection, pytest.raises(refusals, match="neither"):
        connection.execute(upsert("neither", id=1))


@pytest.mark.engine_free
def test_ddl_without_a_connection():
    """A mock engine gets DuckDB's sequences too; a tool that has none does not fail."""
    metadata, seen = sa.MetaData(), []
    table = sa.Table("t", metadata, sa.Column("id", sa.Integer, primary_key=True))
    mock = sa.create_mock_engine(
        "duckdb+tique://", lambda ddl, *_, **__: seen.append(type(ddl).__name__)
    )
    metadata.create_all(mock, checkfirst=False)
    metadata.drop_all(mock, checkfirst=False)
    names = ["CreateSequence", "CreateTable", "DropTable", "DropSequence"]
    assert seen == names
    for call in (table.dispatch.before_create, table.dispatch.after_drop):
        call(table, None, checkfirst=False, _ddl_runner=mock)
    assert seen == names

"""Alembic on the application's own models: autogenerate, upgrade, downgrade."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations

import tique

ENVIRONMENT = """
from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes["metadata"],
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
"""

SCRIPT = """
from alembic import op
import sqlalchemy as sa

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}

def upgrade():
    ${upgrades if upgrades else "pass"}

def downgrade():
    ${downgrades if downgrades else "pass"}
"""


def before():
    """The models of the first release."""
    metadata = sa.MetaData()
    sa.Table(
        "author",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(40), nullable=False, unique=True),
        sa.Column("born", sa.Date),
        sa.Column("books", sa.Integer, server_default="0", nullable=False),
    )
    return metadata


def after():
    """Those of the second: columns come and go, and a table and an index."""
    metadata = sa.MetaData()
    sa.Table(
        "author",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(40), nullable=False, unique=True),
        sa.Column("books", sa.Integer, server_default="0", nullable=False),
        sa.Column("is_living", sa.Boolean, server_default=sa.true()),
        sa.Column("noted", sa.DateTime, server_default=sa.func.now()),
        sa.Column("rate", sa.Numeric(5, 2)),
    )
    sa.Table(
        "book",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column(
            "author_id",
            sa.ForeignKey("author.id", ondelete="CASCADE", name="book_author"),
        ),
        sa.Index("book_title", "title"),
    )
    return metadata


class Project:
    """A folder of migrations, and the database that they are for."""

    def __init__(self, folder, engine):
        (folder / "versions").mkdir(parents=True)
        (folder / "env.py").write_text(ENVIRONMENT)
        (folder / "script.py.mako").write_text(SCRIPT)
        self._folder = folder
        self._engine = engine

    def run(self, step, metadata, *args, **options):
        """One of Alembic's commands, with these models."""
        config = Config()
        config.set_main_option("script_location", str(self._folder))
        config.set_main_option("path_separator", "os")
        with self._engine.begin() as connection:
            config.attributes.update(connection=connection, metadata=metadata)
            return step(config, *args, **options)


@pytest.fixture
def database(url):
    engine = sa.create_engine(url)
    yield engine
    engine.dispose()


@pytest.mark.slow
def test_generated_migrations_go_up_and_down(database, tmp_path):
    project = Project(tmp_path / "migrations", database)
    for name, models in (("first", before()), ("second", after())):
        project.run(command.revision, models, name, autogenerate=True)
        project.run(command.upgrade, models, "head")
        project.run(command.check, models)
    with database.begin() as connection:
        connection.execute(sa.text("INSERT INTO author (name) VALUES ('Ada')"))
        connection.execute(
            sa.text("INSERT INTO book (title, author_id) VALUES ('x', 1)")
        )
        row = connection.execute(
            sa.text("SELECT id, books, is_living, noted IS NULL FROM author")
        ).one()
        assert row == (1, 0, True, False)
    project.run(command.downgrade, before(), "-1")
    with database.connect() as connection:
        rows = connection.execute(sa.text("SELECT id, name, born FROM author"))
        assert rows.all() == [(1, "Ada", None)]
        context = MigrationContext.configure(connection)
        left = {
            table.name for kind, table in compare_metadata(context, before())
        }  # fmt: skip
        assert left <= {"alembic_version"}
    project.run(command.downgrade, before(), "base")
    assert sa.inspect(database).get_table_names() == ["alembic_version"]


@pytest.mark.slow
def test_a_migration_that_fails_leaves_nothing(database, tmp_path):
    project = Project(tmp_path / "migrations", database)
    project.run(command.revision, before(), "first", autogenerate=True)
    (script,) = (tmp_path / "migrations" / "versions").glob("*.py")
    text = script.read_text().replace(
        "\ndef downgrade", "    op.drop_table('x')\n\ndef downgrade"
    )
    script.write_text(text)
    with pytest.raises(sa.exc.DBAPIError) as caught:
        project.run(command.upgrade, before(), "head")
    assert isinstance(caught.value.orig, tique.ProgrammingError)
    assert sa.inspect(database).get_table_names() == ["alembic_version"]


ALL_TYPES = [
    sa.SmallInteger, sa.Integer, sa.BigInteger, sa.Numeric(5, 2), sa.Float, sa.Double, sa.REAL,
    sa.Boolean, sa.String(9), sa.Text, sa.Unicode(9), sa.LargeBinary, sa.Date, sa.Time,
    sa.DateTime, sa.DateTime(timezone=True), sa.Uuid, sa.JSON, sa.Enum("a", "b'c", name="mood"),
    sa.Enum("b'c", "a", name="temper"),
]  # fmt: skip


@pytest.mark.slow
def test_what_was_made_does_not_differ(database):
    metadata = sa.MetaData()
    columns = [sa.Column("id", sa.Integer, primary_key=True)]
    columns += [sa.Column(f"c{n}", kind) for n, kind in enumerate(ALL_TYPES)]
    defaults = [
        sa.Column("d0", sa.String(9), server_default="some"),
        sa.Column("d1", sa.Integer, server_default=sa.text("7")),
        sa.Column("d2", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("d3", sa.DateTime, server_default=sa.text("CURRENT_TIMESTAMP")),
        sa.Column("d4", sa.Date, server_default=sa.func.current_date()),
        sa.Column("d5", sa.Numeric(5, 2), server_default="1.50"),
    ]
    sa.Table("kinds", metadata, *columns, *defaults)
    sa.Table(
        "counted",
        metadata,
        sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
        sa.Column("a", sa.Integer),
        sa.UniqueConstraint("a", "id", name="both"),
        sa.Index("by_a", "a"),
    )
    metadata.create_all(database)
    with database.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []
        found = compare_metadata(context, sa.MetaData())
    kinds = [kind for kind, *_ in found]
    assert sorted(kinds) == ["remove_index", "remove_table", "remove_table"]


@pytest.mark.written_for(["duckdb"], reason="a column may have labels of its own")
def test_an_enum_without_a_name_is_made_again(database):
    with database.begin() as connection:
        connection.execute(sa.text("CREATE TABLE t (kind ENUM('a', 'b''c'))"))
        for _ in range(2):
            metadata = sa.MetaData()
            metadata.reflect(connection)
            metadata.drop_all(connection)
            metadata.create_all(connection)
        (column,) = sa.inspect(connection).get_columns("t")
        assert column["type"].enums == ["a", "b'c"]


def test_a_comment_of_a_column_comes_and_goes(database):
    with database.begin() as connection:
        connection.execute(sa.text('CREATE TABLE t ("In" INTEGER)'))
        operations = Operations(MigrationContext.configure(connection))
        default = sa.inspect(connection).default_schema_name
        for comment, schema in (
            ("it's", None),
            (r"100% \o/", default),
            (None, default),
        ):
            operations.alter_column("t", "In", comment=comment, schema=schema)
            (column,) = sa.inspect(connection).get_columns("t")
            assert column["comment"] == comment


@pytest.mark.written_for(["duckdb"], reason="it has a sequence for each of them")
def test_a_default_that_is_another_sequence_is_a_difference(database):
    with database.begin() as connection:
        for text in (
            "CREATE SEQUENCE other",
            "CREATE TABLE t (id INTEGER PRIMARY KEY DEFAULT nextval('other'), x INTEGER "
            "DEFAULT 1)",
        ):
            connection.execute(sa.text(text))
        metadata = sa.MetaData()
        sa.Table(
            "t",
            metadata,
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("x", sa.Integer, server_default="2"),
        )
        context = MigrationContext.configure(
            connection, opts={"compare_server_default": True}
        )
        found = [change for (change,) in compare_metadata(context, metadata)]
    assert [(kind, name) for kind, _, _, name, *_ in found] == [
        ("modify_default", "id"),
        ("modify_default", "x"),
    ]

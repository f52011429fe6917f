"""ALTER TABLE … ADD, DROP and RENAME CONSTRAINT; FOREIGN KEY beside everything else."""

from __future__ import annotations

import pytest

import tique
from tique.errors import CheckViolation, ForeignKeyViolation, UniqueViolation

POSTGRESQL = pytest.mark.written_for(
    ["postgresql"], reason="other engines' ALTER TABLE does not know it"
)
KEYS_DROPPED = pytest.mark.written_for(
    ["postgresql", "monetdb"], reason="DuckDB drops no constraint"
)


@pytest.fixture
def one(engine):
    opened = engine.connect(checkpoint="manual")
    opened.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, name VARCHAR(10))")
    opened.execute("CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER, n INTEGER)")
    opened.execute("INSERT INTO p VALUES (1, 'a'), (2, 'b')")
    opened.execute("INSERT INTO c VALUES (10, 1, 5), (11, NULL, 6)")
    opened.commit()
    return opened


@pytest.fixture
def two(engine, one):
    return engine.connect()


def rows(connection, query):
    found = connection.execute(query).fetchall()
    connection.rollback()
    return found


ADD = "ALTER TABLE c ADD CONSTRAINT of_p FOREIGN KEY (p) REFERENCES p (id)"


def refused(connection, statement, error):
    with pytest.raises(error) as caught:
        connection.execute(statement)
    connection.rollback()
    return caught.value


# FOREIGN KEY


@pytest.mark.parametrize("folded", [True, False])
def test_add_a_foreign_key(engine, one, two, folded):
    """P9: existing rows are checked, then those to come."""
    if folded:
        one.checkpoint()
    one.execute("INSERT INTO c VALUES (12, 3, 0)")
    one.commit()
    error = refused(one, ADD, ForeignKeyViolation)
    assert (error.constraint, error.table, error.key) == (
        "of_p",
        f"{engine.schema}.c",
        (3,),
    )
    two.execute("INSERT INTO c VALUES (13, 4, 0)")
    two.rollback()
    one.execute("DELETE FROM c WHERE id = 12")
    one.commit()
    one.execute(ADD)
    one.commit()
    refused(two, "INSERT INTO c VALUES (13, 4, 0)", ForeignKeyViolation)
    refused(two, "DELETE FROM p WHERE id = 1", ForeignKeyViolation)
    engine.close()
    refused(engine.connect(), "DELETE FROM p WHERE id = 1", ForeignKeyViolation)


def test_a_key_that_only_memory_has(one):
    """P9: neither the child's row nor the parent's is in storage."""
    one.checkpoint()
    one.execute("INSERT INTO p VALUES (3, 'c')")
    one.execute("INSERT INTO c VALUES (12, 3, 0)")
    one.execute("DELETE FROM p WHERE id = 2")
    one.commit()
    one.execute(ADD + " ON DELETE CASCADE")
    one.execute("DELETE FROM p WHERE id = 3")
    one.commit()
    assert rows(one, "SELECT id FROM c ORDER BY id") == [(10,), (11,)]


def test_a_foreign_key_beside_an_open_delete(one, two):
    """P9: its transaction has looked for no child, and is run again."""
    two.execute("DELETE FROM p WHERE id = 1")
    error = refused(one, ADD, tique.OperationalError)
    assert error.sqlstate == "55006"
    two.rollback()
    one.execute(ADD)
    one.commit()


def test_add_a_column_that_references(engine, one):
    one.execute("ALTER TABLE c ADD COLUMN q INTEGER REFERENCES p ON DELETE SET NULL")
    one.execute("UPDATE c SET q = 2 WHERE id = 10")
    one.commit()
    refused(one, "UPDATE c SET q = 9 WHERE id = 10", ForeignKeyViolation)
    one.execute("DELETE FROM p WHERE id = 2")
    one.commit()
    assert rows(one, "SELECT q FROM c ORDER BY id") == [(None,), (None,)]
    error = refused(
        one,
        "ALTER TABLE c ADD COLUMN r INTEGER DEFAULT 9 REFERENCES p",
        ForeignKeyViolation,
    )
    assert error.constraint == "c_r_fkey"
    assert len(rows(one, "SELECT * FROM c")[0]) == 4


def test_drop_and_rename_a_foreign_key(engine, one):
    one.execute(ADD)
    one.execute("ALTER TABLE c RENAME CONSTRAINT of_p TO parent")
    error = refused(one, "INSERT INTO c VALUES (12, 3, 0)", ForeignKeyViolation)
    assert error.constraint == "parent"
    one.execute("ALTER TABLE c DROP CONSTRAINT parent")
    one.execute("INSERT INTO c VALUES (12, 3, 0)")
    one.execute("DELETE FROM p")
    one.commit()
    engine.close()
    assert rows(engine.connect(), "SELECT p FROM c WHERE id = 12") == [(3,)]


def test_names_follow(engine, one):
    """P9: columns and tables are renamed, columns come and go before others."""
    one.execute(ADD + " ON DELETE CASCADE")
    one.execute("ALTER TABLE c ADD COLUMN boss INTEGER REFERENCES c ON DELETE SET NULL")
    one.execute("UPDATE c SET boss = 10 WHERE id = 11")
    one.commit()
    one.execute("ALTER TABLE c RENAME COLUMN p TO parent")
    one.execute("ALTER TABLE c DROP COLUMN n")
    one.execute("ALTER TABLE c RENAME TO child")
    one.execute("ALTER TABLE p RENAME TO parents")
    one.execute("ALTER TABLE parents ADD COLUMN more INTEGER")
    one.execute("ALTER TABLE parents DROP COLUMN name")
    one.commit()
    engine.close()
    one = engine.connect()
    refused(one, "UPDATE child SET parent = 9", ForeignKeyViolation)
    refused(one, "UPDATE child SET boss = 9", ForeignKeyViolation)
    one.execute("DELETE FROM parents WHERE id = 1")
    one.commit()
    assert rows(one, "SELECT * FROM child") == [(11, None, None)]


@pytest.mark.never(
    ["monetdb"],
    raises=tique.DatabaseError,
    reason="MonetDB renames no column of a key",
)
def test_the_referenced_column_is_renamed(one):
    one.execute(ADD)
    one.execute("ALTER TABLE p RENAME COLUMN id TO number")
    refused(one, "DELETE FROM p WHERE number = 1", ForeignKeyViolation)
    refused(one, "INSERT INTO c VALUES (12, 3, 0)", ForeignKeyViolation)
    one.execute("INSERT INTO c VALUES (12, 2, 0)")
    one.commit()


def test_a_column_of_a_foreign_key_is_dropped(engine, one):
    one.execute(ADD)
    if engine.name == "postgresql":
        one.execute("ALTER TABLE c DROP COLUMN p")
    else:
        error = refused(one, "ALTER TABLE c DROP COLUMN p", tique.ProgrammingError)
        assert "of_p" in str(error)
        one.execute("ALTER TABLE c DROP CONSTRAINT of_p")
        one.execute("ALTER TABLE c DROP COLUMN p")
    one.execute("DELETE FROM p")
    one.commit()
    engine.close()
    assert rows(engine.connect(), "SELECT * FROM c ORDER BY id") == [(10, 5), (11, 6)]


def test_a_foreign_key_is_dropped_after_a_change_of_its_tables(engine, one):
    """P9: in one transaction, as migrations do; until its end it holds for others."""
    one.execute(ADD)
    one.commit()
    one.execute("BEGIN")
    one.execute("DELETE FROM c WHERE p = 1")
    one.execute("UPDATE p SET name = 'x'")
    one.execute("ALTER TABLE c DROP CONSTRAINT of_p")
    one.execute("INSERT INTO c VALUES (12, 7, 0)")
    one.execute("DELETE FROM p WHERE id = 1")
    one.execute("ROLLBACK")
    refused(one, "INSERT INTO c VALUES (12, 7, 0)", ForeignKeyViolation)
    one.execute("BEGIN")
    one.execute("DELETE FROM p WHERE id = 2")
    one.execute("UPDATE c SET n = 8 WHERE id = 10")
    one.execute("ALTER TABLE c DROP CONSTRAINT of_p")
    one.execute("UPDATE c SET p = 7 WHERE id = 11")
    one.execute("COMMIT")
    for _ in range(2):
        assert rows(one, "SELECT * FROM p") == [(1, "a")]
        assert rows(one, "SELECT * FROM c ORDER BY id") == [(10, 1, 8), (11, 7, 6)]
        engine.close()
        one = engine.connect()
    one.execute("DELETE FROM p")
    one.commit()


@KEYS_DROPPED
def test_a_referenced_key_is_dropped(engine, one):
    one.execute(ADD)
    name = "p_id_pkey" if engine.name == "monetdb" else "p_pkey"
    error = refused(
        one, f"ALTER TABLE p DROP CONSTRAINT {name}", tique.OperationalError
    )
    assert error.sqlstate == "2BP01"
    refused(one, "DELETE FROM p WHERE id = 1", ForeignKeyViolation)
    one.execute(f"ALTER TABLE p DROP CONSTRAINT {name} CASCADE")
    one.execute("DELETE FROM p WHERE id = 1")
    one.execute("INSERT INTO p VALUES (2, 'again')")
    one.commit()
    engine.close()
    one = engine.connect()
    assert rows(one, "SELECT count(*) FROM p WHERE id = 2") == [(2,)]
    assert rows(one, "SELECT p FROM c WHERE id = 10") == [(1,)]


@pytest.mark.never(
    ["monetdb"], raises=tique.NotSupportedError, reason="MonetDB 11.41 has none"
)
def test_the_type_of_a_referencing_column(engine, one):
    """P9: a constraint holds for the values after the change."""
    one.execute(ADD)
    one.execute("ALTER TABLE c ALTER COLUMN p TYPE BIGINT")
    refused(one, "DELETE FROM p WHERE id = 1", ForeignKeyViolation)
    refused(
        one, "ALTER TABLE c ALTER COLUMN p TYPE BIGINT USING p + 7", ForeignKeyViolation
    )
    refused(
        one, "ALTER TABLE c ALTER COLUMN p TYPE VARCHAR(9)", tique.NotSupportedError
    )
    one.execute("INSERT INTO c VALUES (12, 2, 0)")
    one.commit()


def test_a_constraint_that_is_not_there(one):
    refused(one, "ALTER TABLE c DROP CONSTRAINT missing", tique.DatabaseError)
    assert rows(one, "SELECT * FROM c ORDER BY id") == [(10, 1, 5), (11, None, 6)]


# Keys and CHECK


@pytest.mark.written_for(["postgresql", "monetdb"], reason="DuckDB 1.5 adds no UNIQUE")
def test_add_unique(engine, one, two):
    """P9: rows that are not folded yet count."""
    one.execute("UPDATE c SET n = 6 WHERE id = 10")
    one.commit()
    refused(one, "ALTER TABLE c ADD CONSTRAINT u UNIQUE (n)", tique.IntegrityError)
    one.execute("UPDATE c SET n = 7 WHERE id = 10")
    one.commit()
    one.execute("ALTER TABLE c ADD CONSTRAINT u UNIQUE (n)")
    refused(two, "INSERT INTO c VALUES (12, 1, 7)", UniqueViolation)
    one.execute("ALTER TABLE c DROP CONSTRAINT u")
    one.rollback()
    two.execute("INSERT INTO c VALUES (12, 1, 7)")
    two.commit()
    one.checkpoint()
    assert rows(one, "SELECT count(*) FROM c WHERE n = 7") == [(2,)]


def test_add_a_primary_key(engine, one, two):
    """P9: a table without a key gets one."""
    one.execute("CREATE TABLE bag (x INTEGER, y INTEGER)")
    one.execute("INSERT INTO bag VALUES (1, 1), (1, 1), (2, NULL)")
    one.commit()
    refused(one, "ALTER TABLE bag ADD PRIMARY KEY (x)", tique.IntegrityError)
    one.execute("DELETE FROM bag WHERE x = 1")
    one.execute("INSERT INTO bag VALUES (1, 1)")
    one.commit()
    one.execute("ALTER TABLE bag ADD PRIMARY KEY (x)")
    refused(two, "INSERT INTO bag VALUES (1, 1)", UniqueViolation)
    two.execute("UPDATE bag SET y = 5 WHERE x = 1")
    two.commit()
    one.execute("INSERT INTO bag VALUES (3, 3)")
    one.commit()
    one.checkpoint()
    engine.close()
    expected = [(1, 5), (2, None), (3, 3)]
    assert rows(engine.connect(), "SELECT * FROM bag ORDER BY x") == expected


def test_a_second_primary_key(one):
    refused(one, "ALTER TABLE c ADD PRIMARY KEY (n)", tique.ProgrammingError)


@POSTGRESQL
def test_checks(engine, one, two):
    one.execute("UPDATE c SET n = -1 WHERE id = 10")
    one.commit()
    refused(one, "ALTER TABLE c ADD CONSTRAINT k CHECK (n > 0)", CheckViolation)
    one.execute("UPDATE c SET n = 1 WHERE id = 10")
    one.commit()
    one.execute("ALTER TABLE c ADD CONSTRAINT k CHECK (n > 0)")
    refused(two, "UPDATE c SET n = 0", CheckViolation)
    one.execute("ALTER TABLE c RENAME CONSTRAINT k TO positive")
    one.execute("ALTER TABLE c DROP CONSTRAINT positive")
    two.execute("UPDATE c SET n = 0")
    two.commit()
    one.rollback()
    one.checkpoint()


@POSTGRESQL
def test_several_changes(engine, one):
    one.execute(
        "ALTER TABLE ONLY c DROP COLUMN n, ADD CONSTRAINT u UNIQUE (m), "
        "ADD COLUMN m INTEGER CHECK (m > 0) REFERENCES c (id), "
        "ALTER COLUMN m SET DEFAULT 10, ADD FOREIGN KEY (p) REFERENCES p"
    )
    one.execute("INSERT INTO c (id) VALUES (12)")
    one.commit()
    refused(one, "INSERT INTO c (id) VALUES (13)", UniqueViolation)
    refused(one, "INSERT INTO c (id, m) VALUES (13, 99)", ForeignKeyViolation)
    refused(one, "INSERT INTO c (id, m, p) VALUES (13, 11, 99)", ForeignKeyViolation)
    refused(one, "INSERT INTO c (id, m) VALUES (13, -1)", CheckViolation)
    assert rows(one, "SELECT * FROM c ORDER BY id") == [
        (10, 1, None),
        (11, None, None),
        (12, None, 10),
    ]

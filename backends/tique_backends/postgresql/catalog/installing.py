"""Objects made in a database: the sequencer in one of its two forms, and privileges.

The role that makes schema ``tique`` owns all its objects, and has to have SELECT,
INSERT, UPDATE and DELETE on every managed table, since every process folds it in the
owner's name. Any other role is a guest (``guests_sql``), once it was granted USAGE on
the schema.

*Cache tables and histories (P11).* SELECT is granted to PUBLIC, and a policy shows the rows only to
roles that may read the table itself when the statement runs: GRANT and REVOKE need not
be carried over. Policies do not apply to the owner.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from tique_backends.catalog.histories import KEEPING_MOMENTS
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import quote, storage_name
from tique_backends.postgresql.sessions.limits import LIMIT
from tique_backends.postgresql.sessions.presence import (
    ALIVE,
    LOCK_OF_MARK,
    LOCKS,
)
from tique_backends.postgresql.values.literals import quoted
from tique_backends.postgresql.values.text_values import HELD
from tique_backends.servers.aside import NO_ROW
from tique_udfs.postgresql import plain_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_backends.session import Session
    from tique_rewriter.schema import Table

FORMS = ("extension", "plain")

_PARTS = ("checks", "clients", "commits", "moving", "calls", "grants")
"""The files with the functions that guests call."""


class Form(NamedTuple):
    """One of the forms, and the statements that make it in the schema ``tique``."""

    name: str
    statements: tuple[str, ...]

    @classmethod
    def of(cls, name: str | None) -> Form:
        """The form of that name."""
        assert name is not None
        return cls(name, _STATEMENTS[name]())

    @property
    def removal(self) -> tuple[str, ...]:
        """Return statements that drop an older version's objects, but for stored rows.

        The sequencer is empty afterwards, or as it was: no process uses it.
        """
        dropped = ("DROP EXTENSION tique",) if self.name == "extension" else ()
        return (_REMOVAL, *dropped)

    @classmethod
    def choose(cls, session: Session, wanted: str | None) -> Form:
        """The form that is wanted; else the extension, if it may be made here.

        Raises
        ------
        EngineError
            UNSUPPORTED if the extension is wanted and there is none.
        """
        obstacle = None if wanted == "plain" else _obstacle(session)
        if wanted == "extension" and obstacle:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"the extension tique cannot be made here: {obstacle}; leave "
                "?sequencer=extension out for the form that needs none",
            )
        name = "plain" if wanted == "plain" or obstacle else "extension"
        return cls(name, _STATEMENTS[name]())


_REMOVAL = """
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN SELECT p.oid::regprocedure AS place FROM pg_proc AS p
        WHERE p.pronamespace = 'tique'::regnamespace AND NOT EXISTS (
            SELECT FROM pg_depend AS d WHERE d.objid = p.oid AND d.deptype = 'e'
        )
    LOOP
        EXECUTE 'DROP FUNCTION ' || found.place || ' CASCADE';
    END LOOP;
    FOR found IN SELECT c.oid::regclass AS place, c.relkind FROM pg_class AS c
        WHERE c.relnamespace = 'tique'::regnamespace AND c.relkind IN ('r', 'S', 'v')
            AND c.relname ~ '^(clients|barriers|checkpointer|sequencer_[a-z]+|guest_[a-z_]+)$'
    LOOP
        EXECUTE format('DROP %s %s', CASE found.relkind WHEN 'r' THEN 'TABLE'
            WHEN 'v' THEN 'VIEW' ELSE 'SEQUENCE' END, found.place);
    END LOOP;
END
$$
"""

_IS_THIS_ONE = """
DO $$ BEGIN IF to_regprocedure('tique.expect_free(bigint[])') IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the server has the extension of an '
        'older tique: run "tique udf build postgresql --install" there, and restart it';
END IF; END $$"""

_STATEMENTS: dict[str, Callable[[], tuple[str, ...]]] = {
    "extension": lambda: ("CREATE EXTENSION tique WITH SCHEMA tique", _IS_THIS_ONE),
    "plain": lambda: (plain_script(),),
}


def _obstacle(session: Session) -> str | None:
    """Why the extension cannot be made, if so."""
    available = session.execute(
        "SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = 'tique'"
    ).fetch_all()
    if not available:
        return "the server does not have it (tique udf build postgresql --install)"
    ((is_allowed,),) = session.execute(
        "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user"
    ).fetch_all()
    return None if is_allowed else "only a superuser may make it"


def expect_nobody_of_before(session: Session) -> None:
    """Refuse if processes use the database that know only its format.

    Raises
    ------
    EngineError
        IN_USE.
    """
    # Those that read the format before, and come later, are refused (:data:`SCHEMA`).
    session.execute("LOCK TABLE tique.clients IN EXCLUSIVE MODE")
    ((others,),) = session.execute(
        f"SELECT count(*) FROM tique.clients AS c JOIN ({ALIVE}) AS a(number, holder) "
        f"ON number = {LOCK_OF_MARK} AND holder = c.role"
    ).fetch_all()
    if others:
        raise EngineError(
            ErrorKind.IN_USE,
            f"processes with an older version of tique use this database ({others}): end "
            "them, then it is upgraded to this version's format",
        )


def guests_script() -> str:
    """Return the statements that make the functions of guests, in either form."""
    folder = files("tique_backends.postgresql").joinpath("guests_sql")

    script = "\n".join(folder.joinpath(f"{p}.sql").read_text("utf-8") for p in _PARTS)
    for name, value in (
        ("{locks}", LOCKS),
        ("{lock_of_mark}", LOCK_OF_MARK),
        ("{alive}", ALIVE),
        ("{limit}", LIMIT),
        ("{no_row}", NO_ROW),
        ("{held}", HELD),
        ("{keeping_moments}", KEEPING_MOMENTS.format(commits="TABLE old")),
    ):
        script = script.replace(name, str(value))
    return script


def readable_as(table: Table, name: str) -> tuple[str, ...]:
    """Return the statements that let a table's readers read its cache table, or history."""
    place = quoted(storage_name(table))
    return (
        f"SELECT tique.guest_deny({quoted(name)})",
        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY as_its_table ON {name} FOR SELECT USING "
        f"(has_table_privilege({place}, 'SELECT') AND NOT row_security_active({place}))",
        f"GRANT SELECT ON {name} TO PUBLIC",
    )


def expect_rights_of_owner(session: Session, table: Table) -> None:
    """Refuse a table that schema tique's owner may not fold, or a role not the owner.

    Raises
    ------
    EngineError
        PROGRAMMING, with SQLSTATE 42501.
    """
    ((owner, is_owner, has_rights),) = session.execute(
        "SELECT rolname, rolname = current_user, has_table_privilege(rolname, $1, "
        "'SELECT') AND has_table_privilege(rolname, $1, 'INSERT') "
        "AND has_table_privilege(rolname, $1, 'UPDATE') "
        "AND has_table_privilege(rolname, $1, 'DELETE') FROM pg_catalog.pg_roles "
        "WHERE oid = (SELECT nspowner FROM pg_catalog.pg_namespace "
        "WHERE nspname = 'tique')",
        [storage_name(table)],
    ).fetch_all()
    if not has_rights:
        raise EngineError(
            ErrorKind.PROGRAMMING,
            f"versions are moved to {table.qualified_name} in the name of {owner}, "
            "which owns schema tique and may not write this table: GRANT SELECT, "
            f"INSERT, UPDATE, DELETE ON {storage_name(table)} TO {quote(owner)}",
            "42501",
        )
    if not is_owner:
        raise EngineError(
            ErrorKind.PROGRAMMING,
            f"only {owner}, the owner of schema tique, can manage a table; connect as "
            "that role, or SET ROLE to it by ?options=-crole%3D" + owner,
            "42501",
        )

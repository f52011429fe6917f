"""Random tables: columns of all types, keys, constraints, defaults, references."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from tests.differential import kinds

if TYPE_CHECKING:
    from tests.differential.kinds import Kind


@dataclass(frozen=True)
class Column:
    """A column; ``default`` is a literal or empty."""

    name: str
    kind: Kind
    not_null: bool = False
    default: str = ""
    check: str = ""

    @property
    def sql(self):
        parts = [self.name, self.kind.name]
        if self.default:
            parts.append(f"DEFAULT {self.default}")
        if self.not_null:
            parts.append("NOT NULL")
        if self.check:
            parts.append(f"CHECK ({self.check})")
        return " ".join(parts)


@dataclass(frozen=True)
class Reference:
    """A FOREIGN KEY to another table's primary key."""

    columns: tuple[str, ...]
    parent: str
    key: tuple[str, ...]
    actions: str

    @property
    def sql(self):
        return (
            f"FOREIGN KEY ({', '.join(self.columns)}) REFERENCES {self.parent} "
            f"({', '.join(self.key)}){self.actions}"
        )


@dataclass(frozen=True)
class Table:
    """A table."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    references: tuple[Reference, ...] = ()

    @property
    def sql(self):
        parts = [column.sql for column in self.columns]
        if self.key:
            parts.append(f"PRIMARY KEY ({', '.join(self.key)})")
        parts += [f"UNIQUE ({', '.join(names)})" for names in self.unique]
        parts += [reference.sql for reference in self.references]
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"

    def __getitem__(self, name):
        return next(column for column in self.columns if column.name == name)

    def of(self, *families):
        """Its columns of some families."""
        return [column for column in self.columns if column.kind.family in families]

    @property
    def names(self):
        return tuple(column.name for column in self.columns)

    @property
    def keyed(self):
        """Names of all columns of a primary or unique key, and of references."""
        sets = (self.key, *self.unique, *(r.columns for r in self.references))
        return {name for names in sets for name in names}


@dataclass
class Schema:
    """The tables that there are."""

    tables: dict[str, Table] = field(default_factory=dict)

    def put(self, table):
        self.tables[table.name] = table

    def drop(self, name):
        del self.tables[name]

    def rename_column(self, table, old, new):
        self.put(
            replace(
                table,
                columns=tuple(
                    replace(c, name=new) if c.name == old else c for c in table.columns
                ),
            )
        )


_ACTIONS = ("", "NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT")


class Designer:
    """Makes tables by a random generator."""

    def __init__(self, engine, chance, usable=None):
        self.engine = engine
        self.chance = chance
        self.kinds = usable or kinds.KINDS[engine]
        self.has_checks = engine != "monetdb"
        self.numbers = count(1)

    def _key_kinds(self):
        return [kind for kind in self.kinds if kind.keyable]

    def column(self, name, kind, *, plain=False):
        not_null = not plain and self.chance.random() < 0.15
        default = ""
        if not plain and self.chance.random() < 0.3:
            default = self.chance.choice(kind.literals)
        check = ""
        if self.has_checks and kind.family == "int" and self.chance.random() < 0.15:
            check = f"{name} < 30000"
        return Column(name, kind, not_null, default, check)

    def table(self):
        """A table that has an integer, a number and a text besides others."""
        chance, pick = self.chance, self.chance.choice
        name = f"t{next(self.numbers)}"
        form = pick(("single", "single", "single", "composite", "none"))
        columns, key = [], ()
        if form == "single":
            kind = kinds.INTEGER if chance.random() < 0.6 else pick(self._key_kinds())
            columns.append(Column("id", kind))
            key = ("id",)
        elif form == "composite":
            columns.append(Column("k1", kinds.INTEGER))
            second = kinds.INTEGER if chance.random() < 0.5 else pick(self._key_kinds())
            columns.append(Column("k2", second))
            key = ("k1", "k2")
        text = next(kind for kind in self.kinds if kind.family == "text")
        columns.append(self.column("i", kinds.INTEGER))
        columns.append(self.column("n", kinds.DECIMAL))
        columns.append(self.column("s", text))
        columns += [
            self.column(f"c{number}", pick(self.kinds))
            for number in range(chance.randint(0, 4))
        ]
        if chance.random() < 0.3:
            chance.shuffle(columns)
        unique = ()
        usable = [c.name for c in columns if c.kind.keyable and c.name not in key]
        if usable and chance.random() < 0.3:
            unique = (tuple(chance.sample(usable, min(len(usable), pick((1, 1, 2))))),)
        return Table(name, tuple(columns), key, unique)

    def family(self):
        """Tables with FOREIGN KEY constraints, of portable types."""
        chance, pick = self.chance, self.chance.choice
        tables = []
        for _ in range(chance.randint(2, 3)):
            name = f"t{next(self.numbers)}"
            size = pick((1, 1, 1, 2))
            key = ("id",) if size == 1 else ("k1", "k2")
            key_kinds = [pick(kinds.PORTABLE) for _ in key]
            columns = [Column(n, kind) for n, kind in zip(key, key_kinds, strict=True)]
            references = []
            parents = [*tables, Table(name, tuple(columns), key)]
            for number in range(chance.randint(0 if not tables else 1, 2)):
                parent = pick(parents)
                names = tuple(f"r{number}{part}" for part in parent.key)
                for column, part in zip(names, parent.key, strict=True):
                    kind = parent[part].kind
                    default = pick(kind.literals) if chance.random() < 0.4 else ""
                    columns.append(Column(column, kind, default=default))
                actions = ""
                for event in ("ON DELETE", "ON UPDATE"):
                    action = pick(_ACTIONS)
                    if action:
                        actions += f" {event} {action}"
                references.append(Reference(names, parent.name, parent.key, actions))
            columns.append(self.column("i", kinds.INTEGER, plain=True))
            columns.append(self.column("s", kinds.PORTABLE[1], plain=True))
            tables.append(Table(name, tuple(columns), key, (), tuple(references)))
        return tables

"""The shop's database: its engine, and its schema by Alembic's migrations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

if TYPE_CHECKING:
    from sqlalchemy import Engine


def open_engine(url: str, clients: int = 1) -> Engine:
    """An engine whose transactions each read one snapshot, for so many clients.

    ``REPEATABLE READ`` is PostgreSQL's name of snapshot isolation, which tique has by default
    and knows by that name too.
    """
    return create_engine(
        url, isolation_level="REPEATABLE READ", pool_size=clients, max_overflow=0
    )


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the schema up to a revision."""
    with engine.begin() as connection:
        command.upgrade(_configured(connection=connection), revision)


def downgrade(engine: Engine, revision: str = "base") -> None:
    """Bring the schema back to a revision."""
    with engine.begin() as connection:
        command.downgrade(_configured(connection=connection), revision)


def check(engine: Engine) -> None:
    """Raise an error if the models differ from the schema: what autogenerate would find."""
    with engine.begin() as connection:
        command.check(_configured(connection=connection))


def _configured(**attributes: object) -> Config:
    config = Config(Path(__file__).with_name("alembic.ini"))
    config.attributes.update(attributes)
    return config

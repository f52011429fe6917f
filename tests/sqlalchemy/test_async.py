"""The dialects for asyncio: Core, ORM, streams, cancellation, retries (P3, P6)."""

from __future__ import annotations

import asyncio
import gc

import pytest
import sqlalchemy as sa
from sqlalchemy import exc, orm
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

import tique
from tique.sqlalchemy import retrying_async


class Base(orm.DeclarativeBase):
    pass


class Owner(Base):
    __tablename__ = "owner"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(20))
    accounts: orm.Mapped[list[Account]] = orm.relationship(
        lazy="selectin", cascade="all, delete-orphan"
    )


class Account(Base):
    __tablename__ = "account"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    owner_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("owner.id"))
    balance: orm.Mapped[int]


@pytest.fixture
def run(engine):
    """Run ``work(alchemy)`` over an engine of SQLAlchemy's with the tables."""

    def in_a_loop(work):
        async def main():
            alchemy = create_async_engine(
                engine.url.replace("://", "+tique_async://", 1)
            )
            try:
                async with alchemy.begin() as connection:
                    await connection.run_sync(Base.metadata.create_all)
                return await work(alchemy)
            finally:
                await alchemy.dispose()

        return asyncio.run(main())

    return in_a_loop


def test_core_and_streams(run):
    async def work(alchemy):
        async with alchemy.begin() as connection:
            rows = [{"id": n, "name": str(n)} for n in range(1, 301)]
            await connection.execute(sa.insert(Owner), rows)
        async with alchemy.connect() as connection:
            names = sa.select(Owner.name).order_by(Owner.id)
            found = (await connection.execute(names)).scalars().all()
            streamed = [row async for row in await connection.stream_scalars(names)]
            assert found == streamed == [str(n) for n in range(1, 301)]
            raw = await connection.get_raw_connection()
            assert isinstance(raw.driver_connection, tique.AsyncConnection)
            await connection.rollback()
            with pytest.raises(exc.IntegrityError):
                await connection.execute(sa.insert(Owner), {"id": 1, "name": "again"})

    run(work)


def test_orm_and_savepoints(run):
    async def work(alchemy):
        make = async_sessionmaker(alchemy, expire_on_commit=False)
        async with make() as session, session.begin():
            session.add(Owner(id=1, name="Ada", accounts=[Account(id=1, balance=5)]))
            await session.flush()
            async with session.begin_nested() as savepoint:
                session.add(Owner(id=2, name="Bob"))
                await session.flush()
                await savepoint.rollback()
        async with make() as session:
            (ada,) = (await session.scalars(sa.select(Owner))).all()
            assert [account.balance for account in ada.accounts] == [5]

    run(work)


def test_reflection(run):
    async def work(alchemy):
        async with alchemy.connect() as connection:
            keys = await connection.run_sync(
                lambda sync: sa.inspect(sync).get_foreign_keys("account")
            )
        assert [key["referred_table"] for key in keys] == ["owner"]

    run(work)


@pytest.mark.slow
def test_isolation_levels(run):
    async def work(alchemy):
        for level in ("SNAPSHOT", "READ COMMITTED", "SERIALIZABLE", "AUTOCOMMIT"):
            options = alchemy.execution_options(isolation_level=level)
            async with options.connect() as connection:
                assert await connection.get_isolation_level() == level
                await connection.execute(sa.select(Owner))

    run(work)


def test_as_of(run):
    async def work(alchemy):
        options = alchemy.execution_options(tique_as_of=10**9)
        async with options.connect() as connection:
            with pytest.raises(sa.exc.DBAPIError, match="there is no version"):
                await connection.execute(sa.select(Owner))
        async with alchemy.connect() as connection:
            await connection.execute(sa.select(Owner))

    run(work)


@pytest.mark.written_for(["postgresql"], reason="SQLAlchemy's option of it")
def test_read_only(run):
    """P12."""

    async def work(alchemy):
        options = alchemy.execution_options(postgresql_readonly=True)
        async with options.connect() as connection:
            with pytest.raises(sa.exc.DBAPIError, match="read-only"):
                await connection.execute(sa.delete(Owner))
        async with alchemy.begin() as connection:
            await connection.execute(sa.delete(Owner))

    run(work)


def test_conflicts_are_retried(run):
    async def work(alchemy):
        make = async_sessionmaker(alchemy)
        async with make() as session, session.begin():
            session.add(Owner(id=1, name="Ada", accounts=[Account(id=1, balance=0)]))

        async def add(session):
            account = await session.get_one(Account, 1)
            await asyncio.sleep(0)
            account.balance += 1

        await asyncio.gather(*(retrying_async(make)(add) for _ in range(8)))
        async with make() as session:
            assert await session.scalar(sa.select(Account.balance)) == 8
            with pytest.raises(ValueError, match="at least 1"):
                retrying_async(make, attempts=0)

    run(work)


def test_a_cancelled_task(run):
    """Its transaction is rolled back, its lock is free, and the pool goes on."""

    async def work(alchemy):
        async with alchemy.begin() as connection:
            await connection.execute(sa.insert(Owner), {"id": 1, "name": "Ada"})
        locked = sa.select(Owner.id).with_for_update()
        async with alchemy.begin() as holder:
            await holder.execute(locked)

            async def wait():
                async with alchemy.begin() as connection:
                    await connection.execute(sa.insert(Owner), {"id": 2, "name": "B"})
                    started.set()
                    await connection.execute(locked)

            started = asyncio.Event()
            task = asyncio.create_task(wait())
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        async with alchemy.begin() as connection:
            assert (await connection.scalars(locked)).all() == [1]

    run(work)


def test_a_connection_that_is_forgotten(run):
    """The garbage collector ends its transaction, and its lock."""

    async def work(alchemy):
        async with alchemy.begin() as connection:
            await connection.execute(sa.insert(Owner), {"id": 1, "name": "Ada"})
        locked = sa.select(Owner.id).with_for_update()
        forgotten = await alchemy.connect()
        await forgotten.execute(locked)
        del forgotten
        with pytest.warns(exc.SAWarning, match="garbage collector"):
            gc.collect()
        async with alchemy.begin() as connection:
            assert (await connection.scalars(locked)).all() == [1]

    run(work)

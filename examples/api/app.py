"""The service: one engine with a pool for all requests, one transaction for each."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, FastAPI, HTTPException, Request
from sqlalchemy import create_engine
from sqlalchemy.orm import sessionmaker
from sqlmodel import Session, SQLModel, func, select

from examples.api.models import Account, Opening, Order, Transfer
from tique.sqlalchemy import retrying

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def application(url: str, *, pool_size: int = 8) -> FastAPI:
    """Return the service on a database, whose tables it makes if they are not there."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        engine = create_engine(
            url, pool_size=pool_size, max_overflow=0, pool_pre_ping=True
        )
        SQLModel.metadata.create_all(engine)
        app.state.sessions = sessionmaker(
            engine, class_=Session, expire_on_commit=False
        )
        yield
        engine.dispose()

    app = FastAPI(title="Bank", lifespan=lifespan)
    # Functions that are not coroutines run in threads, where a statement may wait.
    app.post("/accounts", status_code=201)(open_account)
    app.get("/accounts/{key}")(read_account)
    app.post("/transfers", status_code=201)(transfer)
    app.get("/total")(total)
    return app


def sessions(request: Request) -> sessionmaker[Session]:
    """What makes sessions for this application."""
    made: sessionmaker[Session] = request.app.state.sessions
    return made


Sessions = Annotated[sessionmaker[Session], Depends(sessions)]


def open_account(opening: Opening, sessions: Sessions) -> Account:
    """Open an account."""
    with sessions.begin() as session:
        account = Account.model_validate(opening)
        session.add(account)
    return account


def read_account(key: int, sessions: Sessions) -> Account:
    """Return an account."""
    with sessions() as session:
        return _account(session, key)


def transfer(order: Order, sessions: Sessions) -> Transfer:
    """Move money from one account to another, again if somebody else was first."""

    @retrying(sessions)
    def made(session: Session) -> Transfer:
        source, target = (_account(session, k) for k in (order.source, order.target))
        if source.balance < order.amount:
            raise HTTPException(409, f"account {source.id} has only {source.balance}")
        source.balance -= order.amount
        target.balance += order.amount
        done = Transfer.model_validate(order)
        session.add(done)
        return done

    return made


def total(sessions: Sessions) -> dict[str, str]:
    """All the money that there is, which no transfer changes."""
    with sessions() as session:
        return {"total": str(session.exec(select(func.sum(Account.balance))).one())}


def _account(session: Session, key: int) -> Account:
    account = session.get(Account, key)
    if account is None:
        raise HTTPException(404, f"there is no account {key}")
    return account


if "TIQUE_API_URL" in os.environ:
    app = application(os.environ["TIQUE_API_URL"])

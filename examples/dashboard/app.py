"""The page, and its figures: all of them are answered by the replica."""

from __future__ import annotations

import time
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse

import tique
from examples.dashboard.shop import Shop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PAGE = Path(__file__).with_name("page.html")
TABLES = ["product", "sale"]
SECONDS = 60
SHOWN = ("state", "epochs", "commits")


class Figures:
    """What the page shows, from a connection to the replica."""

    def __init__(
        self, connection: tique.Connection[Any], replication: tique.Replication
    ) -> None:
        self._connection, self._replication = connection, replication

    def now(self) -> dict[str, Any]:
        """The figures of one moment: one snapshot, in which nothing is torn."""
        conn, since = self._connection, time.time() - SECONDS
        with conn.transaction(read_only=True):
            products = conn.execute(
                "SELECT p.name, p.sold, count(s.id), sum(s.price) FROM product p "
                "LEFT JOIN sale s ON s.product = p.id GROUP BY ALL ORDER BY p.name"
            ).fetchall()
            rates = conn.execute(
                "SELECT CAST(floor(sold_at) AS BIGINT), count(*) FROM sale WHERE sold_at >= %s "
                "GROUP BY ALL ORDER BY 1",
                (since,),
            ).fetchall()
        status = self._replication.status()
        return {
            "products": [
                {"name": name, "sales": sales, "revenue": float(revenue or 0)}
                for name, _, sales, revenue in products
            ],
            "rates": rates,
            "difference": sum(sold - sales for _, sold, sales, _ in products),
            "lag": round((status.lag or 0) * 1000),
            **{name: getattr(status, name) for name in SHOWN},
        }


def application(source: str, target: str, *, writers: int = 2) -> FastAPI:
    """Return the dashboard of a shop whose tables are made if they are not there."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with ExitStack() as stack:
            shop = stack.enter_context(Shop(source))
            made = tique.replicate(
                source, target, tables=TABLES, schemas={"public": "main"}
            )
            replication = stack.enter_context(made)
            connection = stack.enter_context(tique.connect(target))
            app.state.figures = Figures(connection, replication)
            shop.open(writers)
            yield

    app = FastAPI(title="Sales", lifespan=lifespan)
    app.get("/", response_class=FileResponse)(page)
    app.get("/figures")(figures)
    return app


def page() -> Path:
    """The page, which asks for the figures twice a second."""
    return PAGE


def figures(request: Request) -> dict[str, Any]:
    """The figures of now."""
    found: Figures = request.app.state.figures
    return found.now()

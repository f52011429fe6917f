"""SQLAlchemy's dialects over tique: ``duckdb+tique``, ``postgresql+tique``, ``monetdb+tique``.

Those for asyncio are called ``duckdb+tique_async`` and so on.

>>> from sqlalchemy import create_engine
>>> engine = create_engine("duckdb+tique:///shop.duckdb")
"""

from __future__ import annotations

from tique.sqlalchemy.retry import retrying, retrying_async

__all__ = ["retrying", "retrying_async"]

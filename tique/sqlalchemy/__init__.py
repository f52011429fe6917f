"""SQLAlchemy's dialects over tique: ``duckdb+tique``, ``postgresql+tique``, ``monetdb+tique``.

>>> from sqlalchemy import create_engine
>>> engine = create_engine("duckdb+tique:///shop.duckdb")
"""

from __future__ import annotations

from tique.sqlalchemy.retry import retrying

__all__ = ["retrying"]

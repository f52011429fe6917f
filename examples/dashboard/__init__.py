"""Live figures of a replica, in a web page, beside writers on PostgreSQL.

``python -m examples.dashboard postgresql://user:password@host/shop duckdb:///replica.duckdb``
(with ``uvicorn`` installed), then open http://127.0.0.1:8000.
"""

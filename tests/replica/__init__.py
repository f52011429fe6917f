"""Replicas: a DuckDB file that follows a database on a server."""

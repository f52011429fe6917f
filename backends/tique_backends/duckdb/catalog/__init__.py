"""DuckDB's catalog."""

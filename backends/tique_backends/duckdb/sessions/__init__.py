"""DuckDB's connections."""

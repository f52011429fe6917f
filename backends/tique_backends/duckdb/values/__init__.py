"""Values in DuckDB's forms."""

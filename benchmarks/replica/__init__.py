"""A columnar replica of PostgreSQL: its queries, its lag, its cost to writers."""

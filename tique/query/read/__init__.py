"""What a transaction reads: the forms of tables, rows by key, queries."""

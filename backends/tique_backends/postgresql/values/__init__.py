"""Values in PostgreSQL's forms."""

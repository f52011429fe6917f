"""PostgreSQL's connections."""

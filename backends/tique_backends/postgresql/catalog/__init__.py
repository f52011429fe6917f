"""PostgreSQL's catalog, and the objects that tique makes in it."""

"""PostgreSQL distributed by Citus: what is other than on one server."""

"""MonetDB: so far its server, for tests and for people who have none."""

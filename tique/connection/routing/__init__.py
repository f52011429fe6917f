"""Queries of a connection that run on a replica in the same process."""

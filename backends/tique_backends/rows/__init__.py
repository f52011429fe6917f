"""Rows that came from an engine, and are looked at later."""

"""Statements about the session and its transactions."""

"""Statements that define tables and other objects, and those that tend them."""

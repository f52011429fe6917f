"""Kinds of statements: how each begins, what reads it, and its command tag."""

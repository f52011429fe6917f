"""Statements that nobody would write, against every engine; see ``__main__``."""

"""Connections and their cursors: from a call of PEP 249 to a statement's run."""

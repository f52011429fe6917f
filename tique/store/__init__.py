"""Rows in memory: recent versions, and single rows and ranges of the storage tables.

The store knows rows, tables and timestamps; no transactions, no connections and no SQL.
:class:`~tique.store.versions.TableVersions` is the interface: one per table, with the
invariants of everything behind it.
"""

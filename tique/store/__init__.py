"""What is known of rows in memory: recent versions, and parts of the storage tables.

It knows rows, tables and timestamps; no transactions, no connections and no SQL.
:class:`~tique.store.versions.TableVersions` is the interface: one per table, with the
invariants of all that is behind it.
"""

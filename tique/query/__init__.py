"""Statements of a transaction: what they read, what they write, what they answer.

A plan of the rewriter becomes a statement (:mod:`tique.query.statements`), which finds
rows in the transaction's write set, in the store or by a snapshot query of the engine,
and buffers what it writes.
"""

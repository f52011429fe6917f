"""Statements of a transaction: their reads, their writes, their results.

A plan of the rewriter becomes a statement (:mod:`tique.query.kinds`), which finds
rows in the transaction's write set, in the store or by a snapshot query of the engine,
and buffers its writes.
"""

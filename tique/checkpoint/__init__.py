"""Checkpoints: versions that every snapshot sees are folded, moved into storage.

:class:`~tique.checkpoint.checkpointer.Checkpointer` runs them;
:mod:`~tique.checkpoint.obstacles` has the tables for which that fails.
"""

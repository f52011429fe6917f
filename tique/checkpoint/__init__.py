"""Checkpoints: versions that every snapshot sees are folded, that is moved to storage.

:class:`~tique.checkpoint.checkpointer.Checkpointer` runs them;
:mod:`~tique.checkpoint.obstacles` has the tables that cannot be folded.
"""

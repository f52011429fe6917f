"""Versions on their way to storage: recovery at opening, checkpoints from then on.

A checkpoint *folds*: it moves versions that every snapshot sees from the cache tables
into storage, and prunes the log.
"""

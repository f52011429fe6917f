"""A columnar replica: a database whose only writer is another database's log.

:mod:`~tique.replica.source` reads the log of the source, :mod:`~tique.replica.replication`
has the handle and the thread that publishes it, :mod:`~tique.replica.copying` fills tables
from a snapshot of the source, :mod:`~tique.replica.columns` has the types and values,
:mod:`~tique.replica.promoting` makes the replica an ordinary database. The replica's place
in the order of commits is :mod:`tique.timeline.replica`, its folds are
:mod:`tique.checkpoint.replica`.
"""

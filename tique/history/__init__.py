"""The past of tables: for how long it is kept, and in which detail.

:class:`~tique.history.retention.Retention` is what is asked for;
:mod:`~tique.history.pruning` takes away what is not.
"""

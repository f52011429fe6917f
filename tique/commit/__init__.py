"""Certification and commit: write sets become log entries, in the order of commits.

:class:`~tique.commit.committer.Committer` leads group commits;
:mod:`~tique.commit.batch` certifies their transactions, by
:mod:`~tique.commit.certification` of write sets and :mod:`~tique.commit.referential` of
FOREIGN KEY constraints; :mod:`~tique.commit.shared` commits where other processes
commit too.
"""

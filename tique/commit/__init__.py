"""Certification and commit: write sets become log entries, in the order of commits.

:class:`~tique.commit.committer.Committer` leads group commits;
:mod:`~tique.commit.certification` decides who may; :mod:`~tique.commit.shared` is what
changes where other processes commit too.
"""

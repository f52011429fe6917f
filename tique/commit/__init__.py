"""Certification and commit: write sets become log entries, in the order of commits.

:class:`~tique.commit.committer.Committer` leads group commits;
:mod:`~tique.commit.certification` finds conflicts; :mod:`~tique.commit.shared` commits
where other processes commit too.
"""

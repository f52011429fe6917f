"""Protocols: how SERIALIZABLE transactions are kept from disturbing one another.

They are those that Wu et al. compare (VLDB 2017, section 3), for one and the same guarantee:
strict serializability. All connections of a process have one of them for a database
(``connect(concurrency=…)``); each is a class with the methods of
:class:`~tique.commit.protocols.optimistic.Optimistic`.
"""

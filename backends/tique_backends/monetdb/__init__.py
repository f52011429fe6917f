"""MonetDB: one process at a time owns the database, and many threads use it.

:mod:`tique_backends.monetdb.server` starts a server for tests and for users without
one; users with a server give its URL. It needs no package of MonetDB's, which is why
nothing is imported here.
"""

"""A shop on SQLAlchemy's ORM: customers order, pay, return and cancel, all at once.

The code knows no engine. Its URL says where the data is: ``duckdb+tique:///shop.duckdb``,
``postgresql+tique://…``, ``monetdb+tique://…``, or PostgreSQL without tique,
``postgresql+psycopg://…``.
"""

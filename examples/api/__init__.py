"""A web service on FastAPI and SQLModel: accounts, and money that goes between them.

``TIQUE_API_URL=duckdb+tique:///bank.duckdb fastapi run examples/api/app.py``, with
``fastapi[standard]`` installed.
"""

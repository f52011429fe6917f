"""A project of Django's on ``tique.django``, which its own test runner tests.

``python -m tests.tools.django_project URL`` with the URL of a PostgreSQL database.
"""

"""Django's PostgreSQL backend over tique: ``"ENGINE": "tique.django"``.

Django 5.2 with psycopg 3, which its backend imports; the connections are tique's.
"""

from tique.django.retry import retrying

__all__ = ["retrying"]

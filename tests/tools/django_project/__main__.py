"""Run the checks, in a database that Django makes for them and drops."""

import sys
from urllib.parse import parse_qs, unquote, urlsplit

import django
from django.conf import settings
from django.core.management import call_command
from django.db.backends.postgresql.psycopg_any import IsolationLevel


def configure(url, **changes):
    parts = urlsplit(url)
    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    host = options.pop("host", parts.hostname)
    database = {
        "ENGINE": "tique.django",
        "NAME": parts.path.removeprefix("/"),
        "USER": unquote(parts.username),
        "PASSWORD": unquote(parts.password),
        "HOST": host,
        "PORT": options.pop("port", parts.port),
        "OPTIONS": options,
    }
    snapshot = {
        **database,
        "OPTIONS": {**options, "isolation_level": IsolationLevel.REPEATABLE_READ},
        "TEST": {"MIRROR": "default"},
    }
    serializable = {
        **snapshot,
        "OPTIONS": {**options, "isolation_level": IsolationLevel.SERIALIZABLE},
    }
    settings.configure(
        DATABASES={
            "default": database,
            "snapshot": snapshot,
            "serializable": serializable,
        },
        INSTALLED_APPS=[
            "django.contrib.contenttypes",
            "django.contrib.auth",
            "django.contrib.sessions",
            "tests.tools.django_project",
        ],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        SECRET_KEY="for tests",
        USE_TZ=True,
        TIME_ZONE="Europe/Lisbon",
        **changes,
    )
    django.setup()


if __name__ == "__main__":
    configure(sys.argv[1])
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
    call_command(
        "test", "tests.tools.django_project", pattern="checks.py", interactive=False
    )

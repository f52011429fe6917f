"""How Alembic runs the shop's migrations: by a connection, or a URL given with ``-x url=``."""

from __future__ import annotations

from alembic import context

from examples.shop.database import open_engine
from examples.shop.models import Base


def run(**how: object) -> None:
    """Run the migrations that were asked for."""
    context.configure(
        target_metadata=Base.metadata,
        compare_server_default=True,
        **how,  # type: ignore[arg-type]
    )
    with context.begin_transaction():
        context.run_migrations()


connection = context.config.attributes.get("connection")
if connection is not None:
    run(connection=connection)
else:
    url = context.get_x_argument(as_dictionary=True)["url"]
    if context.is_offline_mode():
        run(url=url, literal_binds=True)
    else:
        with open_engine(url).connect() as opened:
            run(connection=opened)

from sqlalchemy.testing.suite import *  # noqa: F403
from sqlalchemy.testing.suite import ServerSideCursorsTest as _ServerSideCursorsTest


class ServerSideCursorsTest(_ServerSideCursorsTest):
    """tique's cursors are all alike: the execution's context says which was asked for."""

    def _fixture(self, server_side_cursors):
        engine = super()._fixture(server_side_cursors)
        context = engine.dialect.execution_ctx_cls
        asked = self._asked = []

        class Asked(context):
            def create_server_side_cursor(self):
                asked.append(super().create_server_side_cursor())
                return asked[-1]

        engine.dialect.execution_ctx_cls = Asked
        return engine

    def _is_server_side(self, cursor):
        return any(cursor is asked for asked in self._asked)

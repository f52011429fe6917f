"""Connections and cursors for asyncio: :class:`tique.AsyncConnection`."""

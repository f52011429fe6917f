"""The tests. A package, so that a library's own ``tests`` cannot stand before it."""

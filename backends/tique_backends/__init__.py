"""Engines behind one small interface: one folder per engine.

See :mod:`tique_backends.engine` and :mod:`tique_backends.session` for the interface and
:mod:`tique_backends.registry` for the way from a URL to an engine.
"""

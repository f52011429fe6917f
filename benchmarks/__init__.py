"""Benchmarks that set an engine with tique beside the same engine without it."""

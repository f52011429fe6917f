"""Expressions and conditions that need no engine."""

"""Threads, forks, signals, and statements that are tried again."""

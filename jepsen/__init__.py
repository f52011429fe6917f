"""Workloads that record histories, and the checkers that judge them."""

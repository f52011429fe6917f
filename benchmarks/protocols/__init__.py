"""Isolation levels and protocols side by side, in the shape of Wu et al. (VLDB 2017)."""

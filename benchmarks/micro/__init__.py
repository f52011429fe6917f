"""Measurements of one thing each: group commit, the driver's own cost, scans."""

"""Plans as data: what the driver gets for a statement's text."""

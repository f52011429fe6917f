"""MonetDB's connections."""

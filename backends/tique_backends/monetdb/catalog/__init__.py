"""MonetDB's catalog."""

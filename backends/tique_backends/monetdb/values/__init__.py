"""Values in MonetDB's forms."""

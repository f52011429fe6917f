"""What engines' catalogs, and tique's own schema, say of tables."""

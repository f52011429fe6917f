"""What the names in a statement mean, and where it reads managed tables."""

"""Many rows at once between the application and a connection."""

"""Applications that use tique as any other database."""

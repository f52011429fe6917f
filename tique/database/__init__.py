"""An open database: its parts put together, its settings, its status."""

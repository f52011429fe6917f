"""A transaction: its snapshot, its turns at contested rows, its messages."""

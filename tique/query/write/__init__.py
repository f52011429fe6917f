"""What a transaction writes: changes of rows, and what constrains them."""

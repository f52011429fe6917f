"""What engines have in common that several processes share."""

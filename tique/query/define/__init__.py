"""What a transaction defines: DDL, by itself or inside of a transaction."""

"""A statement's text: its placeholders, tokens, words and names."""

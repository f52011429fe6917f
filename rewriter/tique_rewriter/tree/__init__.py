"""What of the parser's syntax trees is understood."""

"""Elle's verdicts, and ours held against them."""

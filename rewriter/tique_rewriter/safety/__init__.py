"""What a statement may call and see; everything else is refused."""

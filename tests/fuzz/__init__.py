"""Random statements against every engine; see ``__main__``."""

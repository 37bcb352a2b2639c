"""Tools of this package's own development; nothing here is imported at run time."""

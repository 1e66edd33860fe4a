"""Search for settings in which a scheme falls far below its best path."""

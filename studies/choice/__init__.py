"""One grid of links for all schemes, and the choice of a scheme that follows from it."""

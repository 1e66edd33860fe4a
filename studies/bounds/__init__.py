"""How close schemes come to the most goodput that links and receive buffer admit."""

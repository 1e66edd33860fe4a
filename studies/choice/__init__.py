"""Which scheme when: one grid of links for all schemes, and what it says about choosing one."""

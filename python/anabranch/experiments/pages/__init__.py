"""Pages and listings about studies and their reproduction."""

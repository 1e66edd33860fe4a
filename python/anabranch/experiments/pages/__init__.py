"""Pages and listings about papers and their reproduction."""

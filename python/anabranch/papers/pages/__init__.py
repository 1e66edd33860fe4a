"""What is written about papers and their reproduction."""

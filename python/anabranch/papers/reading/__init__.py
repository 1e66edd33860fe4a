"""Reading papers from their folders."""

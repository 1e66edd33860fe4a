"""Exit statuses of commands."""

FAILED = 1
INPUT_ERROR = 2
"""Wrong command line, scenario, scheme or plan."""
INTERRUPTED = 130
"""Ctrl-C: 128 plus the number of SIGINT."""

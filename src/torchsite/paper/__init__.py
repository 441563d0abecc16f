"""Experiments: each module states its claim, its command and its cost; each result is a file."""

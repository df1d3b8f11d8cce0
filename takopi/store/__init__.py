"""What is remembered: one SQLite file, one writer, and functions that take its connection."""

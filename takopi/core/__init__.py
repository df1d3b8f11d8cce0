"""The vocabulary: pure data that every room may speak, without I/O and without Trio."""

"""Voice notes become text."""

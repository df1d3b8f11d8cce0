"""What a message becomes: a run in its lane, from the first card to the answer."""

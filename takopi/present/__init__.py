"""What a person reads: pure functions from facts to text with marks, and to cards."""

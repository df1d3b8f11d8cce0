"""Every prompt that takopi sends, put together in one place from the same pieces."""

"""What a message means: who may speak, and which thread, context and engine it is for."""

"""Prompts that are put together from several messages, and sent when they are right."""

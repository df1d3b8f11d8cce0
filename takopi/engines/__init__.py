"""Coding agents behind one contract: one folder an engine, one pump for all."""

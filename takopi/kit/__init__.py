"""Tools for Trio programs that know nothing of takopi."""

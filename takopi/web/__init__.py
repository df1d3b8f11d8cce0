"""The local page: one chat in a browser on this machine, as a transport like any other."""

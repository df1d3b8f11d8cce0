"""The composition root: the nursery tree, the wiring, the router and the chat's commands."""

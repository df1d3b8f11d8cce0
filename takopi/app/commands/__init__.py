"""The commands of the chat, one file each; `table` knows their names without loading them."""

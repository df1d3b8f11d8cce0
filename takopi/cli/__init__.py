"""Commands a person types, one file each."""

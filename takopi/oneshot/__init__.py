"""Short questions to a model, beside the engines' runs: no tools, no files, no memory."""

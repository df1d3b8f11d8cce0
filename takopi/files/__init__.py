"""Files that people send and fetch: every path stays inside one folder, whoever wrote it."""

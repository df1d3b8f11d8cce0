"""Tools of the person's own MCP servers: started on first use, called with consent."""

"""claude: Anthropic's Claude Code, spoken to in stream-json both ways."""

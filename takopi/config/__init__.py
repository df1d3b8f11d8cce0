"""What is configured: one TOML file, checked whole, edited with care."""

"""One agent and its constraints."""

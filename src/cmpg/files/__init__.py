"""What is kept: games, policies and run folders. What writes a format stands beside what reads it."""

"""What a game is, in three forms with one contract."""

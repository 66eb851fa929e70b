"""The command `cmpg`: thin, and the only room that talks to a terminal."""

"""Games on a joint state, with tables over joint actions."""

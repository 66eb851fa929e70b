"""Beyond Nash: devices that recommend what to do, found and certified."""

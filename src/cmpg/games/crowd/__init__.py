"""Crowds: agents that are alike in kind are held once, with a number; those alike in policy too are a group."""

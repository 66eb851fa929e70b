"""Equilibria of crowds: how groups are found (search), and the certificate that decides."""

"""Tables, run folders, plots, the page: the only room that formats."""

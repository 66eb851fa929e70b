"""Pages whose examples call the tools of others run where those are installed, as in `python -m checks oracles`."""

from importlib.util import find_spec

NEEDED = {"gambit": "pygambit", "openspiel": "pyspiel", "pettingzoo": "pygame", "storm": "stormpy"}
collect_ignore = [f"coming-from/{page}.md" for page, module in NEEDED.items() if find_spec(module) is None]

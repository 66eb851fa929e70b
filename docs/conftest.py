"""Pages whose examples call tools that others wrote are run where those are installed, and by `make oracles`."""

from importlib.util import find_spec

NEEDED = {"gambit": "pygambit", "openspiel": "pyspiel", "pettingzoo": "pygame", "storm": "stormpy"}
collect_ignore = [f"coming-from/{page}.md" for page, module in NEEDED.items() if find_spec(module) is None]

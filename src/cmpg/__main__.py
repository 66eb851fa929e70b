"""The command `cmpg`, and `python -m cmpg`: signals are handled before anything is imported that takes time."""

from __future__ import annotations

import sys

from cmpg.cli.interrupts import exit_code, handle_signals, ignore_signals, was_interrupted


def main() -> None:
    """Run the command."""
    handle_signals()
    try:
        try:
            from cmpg.cli.main import main as run

            run()
        finally:
            ignore_signals()
    except KeyboardInterrupt as stop:
        sys.exit(exit_code(stop))
    except Exception as broken:
        # A package that is interrupted may raise something else instead: an ImportError; before Python 3.12 a
        # RuntimeError while one of its classes is made; whatever its own cleaning up raises.
        if not was_interrupted():
            raise
        sys.exit(exit_code(broken))


if __name__ == "__main__":
    main()

"""Running the command: in this process, as a program of its own, and on a terminal."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from cmpg.cli.main import main

PROGRAM = (sys.executable, "-m", "cmpg")

SILENCE = re.compile(r"^.*  \d+ s\n", re.MULTILINE)
"""What a command says after a second in which it had nothing to say: on a slow machine anywhere, so it is left out."""

PATIENCE = 600.0
"""Seconds until what does not end counts as hanging, on however slow a machine."""


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


def cmpg(*words: Any) -> Ran:
    """Run `cmpg …` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with patch.object(sys, "argv", ["cmpg", *map(str, words)]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ending:
            code = ending.code
    return Ran(int(code or 0), out.getvalue(), SILENCE.sub("", err.getvalue()))


def program(*words: Any, **environment: str) -> Ran:
    """Run `cmpg …` as a program of its own, with its output in pipes."""
    done = subprocess.run([*PROGRAM, *map(str, words)], capture_output=True, env=os.environ | environment, check=False)
    return Ran(done.returncode, done.stdout.decode(), SILENCE.sub("", done.stderr.decode()))


def on_a_terminal(*words: Any, columns: int = 80, **environment: str) -> tuple[int, str]:
    """Run `cmpg …` on a terminal of so many columns, and return its exit code and all that it wrote there."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    unset = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    environment = {"TERM": "xterm", **environment}
    running = subprocess.Popen(
        [*PROGRAM, *map(str, words)], stdin=slave, stdout=slave, stderr=slave, env=unset | environment
    )
    os.close(slave)
    said = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    os.close(master)
    return running.wait(), said.decode()

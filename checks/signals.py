"""Signals at random moments: every long command, SIGINT, SIGTERM and SIGHUP, then what it said, left and resumed.

A trial starts a command, sends one signal at a moment drawn uniformly from the CPU time that the whole command takes
(so that it does not matter how busy the machine is), and waits for the end. SIGINT and SIGHUP go to the process group,
as a terminal sends them; SIGTERM to the command alone. What is checked:

- exit code 130 with a last line on standard error that begins with "interrupted"; 1 with such a line or the status
  INTERRUPTED; 0 only with the files of the whole command, soon after the signal, or with a certificate. No traceback,
  no end by the signal itself.
- every file is whole: JSON parses, archives open, no temporary name is left; an earlier reproduction is as it was.
- no process of the command is left.
- `learn` and `sweep`, resumed, end with the bits of the whole command.

A signal before Python has installed any handler (while the interpreter starts) may end the process in its own way; then
nothing may be written. Whether the handler is there is read from /proc, so this check runs on Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from checks import BUILD, evidence

PROGRAM = (sys.executable, "-m", "cmpg")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LIMIT = 900.0
"""Seconds after which a command hangs, on however busy a machine."""

SOON = 1.5
"""CPU seconds in which a command that is just ending has ended."""

PAUSE = 0.03
"""Seconds between two looks at a command."""

LEARN = ("learn", "spectrum", "--agents", "2", "--mode", "shared", "--epsilon", "0.5", "--seeds", "6", "--seed", "7")
SWEEP = ("sweep", "spectrum", "--agents", "2", "--threshold", "0.05:0.4:0.05")
COMMANDS = {
    "solve": ("solve", "congestion-counting", "--agents", "20", "--restarts", "60"),
    "learn": LEARN,
    "learn --jobs 2": (*LEARN, "--jobs", "2"),
    "sweep": SWEEP,
    "sweep --jobs 2": (*SWEEP, "--jobs", "2"),
    "reproduce --quick": ("reproduce", "--quick", "--jobs", "1"),
    "report": ("report", "{run}"),
    "export": ("export", "{run}", "--what", "policy"),
}
"""The words of each command; `--out` and a new name are added."""

RESUMED = ("learn", "sweep")

TIMED = ("timings.csv", "trace.csv", "report.html")
"""Files of run folders that tell how long something took."""


@dataclass(frozen=True)
class Outcome:
    """How one trial ended; `wrong` is empty if all is as promised."""

    command: str
    signal: str
    ending: str
    seconds: float  # from the signal to the end
    wrong: str = ""


@dataclass(frozen=True)
class Whole:
    """What a command leaves that nothing interrupts."""

    code: int
    cpu: float  # seconds, of all processes
    files: dict[str, bytes]


def main(argv: list[str]) -> int:
    """Send the signals, and write `build/signals.md` and `build/signals.json`."""
    parser = argparse.ArgumentParser(prog="python -m checks signals", description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=300, help="signals to send (300)")
    parser.add_argument("--seed", type=int, default=1, help="random seed of commands, signals and moments (1)")
    parser.add_argument("--jobs", type=int, default=2, help="trials at the same time (2)")
    parser.add_argument("--only", choices=COMMANDS, action="append", help="only this command; may be repeated")
    options = parser.parse_args(argv)
    outcomes = send_signals(
        options.only or list(COMMANDS),
        trials=options.trials,
        seed=options.seed,
        jobs=options.jobs,
        tell=partial(print, flush=True),
    )
    page = table(outcomes)
    BUILD.mkdir(exist_ok=True)
    (BUILD / "signals.md").write_text(page, "utf-8")
    (BUILD / "signals.json").write_text(json.dumps([vars(each) for each in outcomes], indent=1), "utf-8")
    print(page)
    if options.only is None and options.trials >= parser.get_default("trials"):
        wrong = sum(bool(each.wrong) for each in outcomes)
        sent = f"{len(outcomes)} signals at random moments of {len(COMMANDS)} commands"
        evidence.record("signals", f"{sent}; {wrong} wrong endings, lost files or other bits after `--resume`")
    return 1 if any(each.wrong for each in outcomes) else 0


def send_signals(
    commands: Sequence[str], *, trials: int, seed: int, jobs: int, tell: Callable[[str], object] = lambda _: None
) -> list[Outcome]:
    """Run so many trials, the commands and signals in turn, and return how they ended."""
    rng = random.Random(seed)
    with (
        default_signals(),
        tempfile.TemporaryDirectory(prefix="signals-") as scratch,
        ThreadPoolExecutor(jobs) as pool,
    ):
        solved = Path(scratch) / "run"
        subprocess.run([*PROGRAM, "solve", "grid-world", "--out", solved], check=True, capture_output=True)
        bench = Bench(Path(scratch), solved)
        whole = dict(zip(commands, pool.map(bench.undisturbed, commands), strict=True))
        outcomes = []
        planned = drawn(commands, trials, rng)
        for each in pool.map(lambda trial: bench.disturbed(*trial, whole[trial[1]]), planned):
            outcomes.append(each)
            tell(f"{len(outcomes)} of {trials}: {each.command}, {each.signal}: {each.ending} {each.wrong}".rstrip())
    return outcomes


def drawn(commands: Sequence[str], trials: int, rng: random.Random) -> list[tuple[int, str, signal.Signals, float]]:
    """Return number, command, signal and moment of each trial; every command meets every signal."""
    found = []
    for number in range(trials):
        turn, place = divmod(number, len(commands))
        found.append((number, commands[place], SIGNALS[(turn + place) % len(SIGNALS)], rng.random()))
    return found


@dataclass(frozen=True)
class Bench:
    """Where trials run."""

    scratch: Path
    solved: Path  # a run folder for those who read one

    def undisturbed(self, command: str) -> Whole:
        """Run a command to its end."""
        target, cpu = self.scratch / f"whole {command}", 0.0
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(self._line(command, target), **quiet, start_new_session=True) as running:
            while running.poll() is None:
                cpu = max(cpu, cpu_seconds(running.pid))
                time.sleep(PAUSE)
        assert running.returncode in (0, 1), f"{command} ends with {running.returncode}"
        return Whole(running.returncode, cpu, contents(target))

    def disturbed(self, number: int, command: str, kind: signal.Signals, moment: float, whole: Whole) -> Outcome:
        """Run a command, send it a signal, and see what is left; draw again if it was over before."""
        while True:
            folder = self.scratch / f"trial {number}"
            folder.mkdir()
            target = folder / "new"
            earlier = self._earlier(command, target)
            ended = interrupted(self._line(command, target), kind, moment * whole.cpu)
            if ended is not None:
                break
            shutil.rmtree(folder)
            moment *= 0.9  # it took less than the whole one
        wrong = ended.wrong(whole, contents(target), earlier) or torn(folder)
        if not wrong and ended.state != "default" and command.partition(" ")[0] in RESUMED:
            resume = ["--resume"] if target.exists() else []
            again = subprocess.run(
                [*self._line(command, target), *resume], capture_output=True, text=True, timeout=LIMIT, check=False
            )
            if (again.returncode, contents(target)) != (whole.code, whole.files):
                wrong = f"resumed to other files, with exit code {again.returncode}: {last_line(again.stderr)}"
        shutil.rmtree(folder)
        return Outcome(command, kind.name, ended.ending, ended.seconds, wrong)

    def _line(self, command: str, target: Path) -> list[str]:
        words = [word.format(run=self.solved) for word in COMMANDS[command]]
        return [*PROGRAM, *words, "--out", str(target)]

    def _earlier(self, command: str, target: Path) -> dict[str, bytes]:
        """Put an earlier reproduction where a new one is to be, and return what is there."""
        if command.startswith("reproduce"):
            target.mkdir()
            record = {"format": "cmpg-reproduction", "files": ["claims.json"]}
            (target / "claims.json").write_text(json.dumps(record), "utf-8")
        return contents(target)


@dataclass(frozen=True)
class Ended:
    """How an interrupted command ended."""

    code: int
    out: str
    err: str
    state: str  # of the signal when it was sent: default, handled or ignored
    seconds: float
    cpu: float  # seconds of all its processes, after the signal
    left: int  # processes

    @property
    def ending(self) -> str:
        """The ending in a few words."""
        if self.state == "default":
            return "before any handler"
        if self.state == "ignored" and self.code in (0, 1):
            return "after the answer"
        return {0: "answered", 1: "partial answer", 130: "130, and why"}.get(self.code, f"exit code {self.code}")

    def wrong(self, whole: Whole, files: dict[str, bytes], earlier: dict[str, bytes]) -> str:
        """Say what is wrong with the ending, or nothing."""
        line = last_line(self.err)
        if self.left:
            return f"{self.left} processes are left"
        if self.state == "default":
            return "" if files == earlier or files == whole.files else "files were written before any handler"
        if "Traceback" in self.err or "Exception ignored" in self.err:
            return f"traceback: {self.err}"
        if self.code == whole.code and files == whole.files:
            late = self.state == "ignored" or self.cpu < SOON
            return "" if late else f"went on for {self.cpu:.1f} CPU seconds as if there had been no signal"
        if self.code == 130:
            if not line.startswith("interrupted"):
                return f"exit code 130, and the last line is {line!r}"
            untouched = files == earlier or "--resume goes on" in line or " written" in line
            return "" if untouched else f"{line!r}, and there are other files"
        if self.code == 1 and (line.startswith("interrupted: ") or "INTERRUPTED" in self.out):
            return ""
        if self.code in (0, 1) and "CERTIFIED" in self.out:  # a solve that was certified before the signal
            return ""
        return f"exit code {self.code}, last line {line!r}"


def interrupted(line: Sequence[str], kind: signal.Signals, cpu: float) -> Ended | None:
    """Start a command, send it a signal after so many CPU seconds, and wait for its end; None if it was over before."""
    # Not pipes: nobody reads them before the signal, and a command that has filled one would wait for ever.
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with subprocess.Popen(line, stdout=out, stderr=err, start_new_session=True) as running:
            while cpu_seconds(running.pid) < cpu and running.poll() is None:
                time.sleep(PAUSE)
            state = signal_state(running.pid, kind)
            if running.poll() is not None:
                return None
            sent, before = time.monotonic(), cpu_seconds(running.pid)
            after = before
            if kind is signal.SIGTERM:
                running.send_signal(kind)
            else:
                os.killpg(running.pid, kind)
            while (code := running.poll()) is None:
                after = max(after, cpu_seconds(running.pid))
                if time.monotonic() > sent + LIMIT:
                    raise TimeoutError(f"{' '.join(line)} did not end within {LIMIT:.0f} s of {kind.name}")
                time.sleep(PAUSE)
            took = time.monotonic() - sent
        patience = time.monotonic() + 60
        while (left := session_members(running.pid)) and time.monotonic() < patience:
            time.sleep(0.2)
        out.seek(0)
        err.seek(0)
        return Ended(code, out.read(), err.read(), state, took, after - before, len(left))


def signal_state(process: int, kind: signal.Signals) -> str:
    """Return what a command does with a signal now; Python itself handles SIGINT, before the command does."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return "ignored"  # it has just ended
    masks = {name: int(mask, 16) for name, mask in re.findall(r"(SigCgt|SigIgn):\s*([0-9a-f]+)", status)}
    if masks["SigIgn"] >> (kind - 1) & 1:
        return "ignored"
    return "handled" if masks["SigCgt"] >> (signal.SIGTERM - 1) & 1 else "default"


@contextmanager
def default_signals() -> Iterator[None]:
    """Give commands that are started inside the signals' defaults: `nohup` and `&` of a script ignore some of them."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("signals are reset in the main thread only")
    before = {each: signal.getsignal(each) for each in SIGNALS}
    ignored = [each for each, handler in before.items() if handler is signal.SIG_IGN]
    for each in ignored:
        signal.signal(each, signal.SIG_DFL)
    try:
        yield
    finally:
        for each in ignored:
            signal.signal(each, before[each])


def session_members(session: int, first: int = 0) -> list[float]:
    """Return the CPU seconds of each process of a session that still runs, of those numbered from `first` on."""
    found = []
    for process in os.listdir("/proc"):
        if not process.isdigit() or int(process) < first:
            continue
        try:
            stat = Path(f"/proc/{process}/stat").read_text()
            state, _, _, belongs, *more = stat.rpartition(") ")[2].split()
        except OSError:
            continue
        if int(belongs) == session and state not in "ZX":
            found.append((int(more[7]) + int(more[8])) / os.sysconf("SC_CLK_TCK"))
    return found


def cpu_seconds(session: int) -> float:
    """Return the CPU seconds of a session, of its processes with higher numbers than the first."""
    return sum(session_members(session, first=session))


def contents(target: Path) -> dict[str, bytes]:
    """Return the bytes of a file, or of all files of a folder, without times."""
    if target.is_file():
        return {"": target.read_bytes()}
    paths = [path for path in target.rglob("*") if path.is_file() and path.name not in TIMED]
    return {str(path.relative_to(target)): without_seconds(path.read_bytes()) for path in sorted(paths)}


def without_seconds(text: bytes) -> bytes:
    """Blank the times in JSON; arrays have none."""
    return re.sub(rb'"seconds": ?[0-9.e+-]+', b'"seconds": 0', text)


def torn(folder: Path) -> str:
    """Name a file that is not whole, or has a temporary name."""
    for path in sorted(folder.rglob("*")):
        if path.name.startswith(".") and path.name != ".writer":
            return f"{path.name} is left"
        try:
            if path.suffix == ".json":
                json.loads(path.read_text("utf-8"))
            elif path.suffix == ".jsonl":
                [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            elif path.suffix == ".npz" and zipfile.ZipFile(path).testzip() is not None:
                return f"{path.name} is torn"
        except (ValueError, zipfile.BadZipFile) as problem:
            return f"{path.name} is torn: {problem}"
    return ""


def last_line(text: str) -> str:
    """Return the last line of a text."""
    return text.rstrip("\n").rpartition("\n")[2]


def table(outcomes: Sequence[Outcome]) -> str:
    """Return endings by command and signal, how long they took, and all that was wrong, as Markdown."""
    endings = sorted({each.ending for each in outcomes})
    lines = ["| command | signal | sent | " + " | ".join(endings) + " | slowest, s | wrong |"]
    lines.append("|" + "---|" * (len(endings) + 5))
    for command in dict.fromkeys(each.command for each in outcomes):
        for kind in SIGNALS:
            rows = [each for each in outcomes if (each.command, each.signal) == (command, kind.name)]
            if not rows:
                continue
            counts = Counter(each.ending for each in rows)
            slowest, wrong = max(each.seconds for each in rows), sum(bool(each.wrong) for each in rows)
            cells = [command, kind.name, len(rows), *(counts[each] for each in endings), f"{slowest:.1f}", wrong]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    wrong_ones = [f"- {each.command}, {each.signal}: {each.wrong}" for each in outcomes if each.wrong]
    return "\n".join([*lines, "", *(wrong_ones or [f"All {len(outcomes)} as promised."]), ""])

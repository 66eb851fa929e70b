"""Storm, as a program of its own: it computes the value of PRISM models, by multi-objective model checking.

Run as a script it reads JSON lines [model, property] and writes one number for each; that process imports Storm's
Python module, and this library never does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

NAME = "stormpy"
PRECISION = "1/100000000000"


def best_values(cmdps: Sequence) -> list[float]:
    """The value of the best policy that meets the constraints, of each CMDP."""
    from cmpg.interop import to_prism

    problems = [to_prism(cmdp) for cmdp in cmdps]
    questions = "".join(json.dumps([each.model, each.properties.splitlines()[-1]]) + "\n" for each in problems)
    done = subprocess.run([sys.executable, __file__], input=questions, capture_output=True, text=True, check=True)
    answers = [float(line.removeprefix("value ")) for line in done.stdout.splitlines() if line.startswith("value ")]
    return [answer - each.reward_offset for answer, each in zip(answers, problems, strict=True)]


def _answer(model: str, question: str, folder: Path) -> float:
    import stormpy

    path = folder / "model.prism"
    path.write_text(model)
    program = stormpy.parse_prism_program(str(path))
    properties = stormpy.parse_properties(question, program)
    built = stormpy.build_model(program, properties)
    environment = stormpy.Environment()
    environment.modelchecker().multi().precision = stormpy.Rational(PRECISION)
    return stormpy.model_checking(built, properties[0], environment=environment).get_value(built.initial_states[0])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as new:
        for line in sys.stdin:
            print("value", repr(_answer(*json.loads(line), Path(new))), flush=True)

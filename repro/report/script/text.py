"""The text of the script: seeds the generators, loads the test file by its path, calls the test."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repro import ui

LINES = 80
"""The script is no longer than this."""

WIDTH = 110

_HELPERS = {
    "fixture": '''
        def fixture(defined, **needs):
            """What a fixture gives: its function, called without pytest."""
            unwrap = getattr(defined, "_get_wrapped_function", lambda: defined.__pytest_wrapped__.obj)
            value = unwrap()(**needs)
            return next(value) if inspect.isgenerator(value) else value
        ''',
    "marked": '''
        def marked(function, name, index):
            """A value that the test's parametrize mark has for a parameter."""
            for mark in function.pytestmark:
                names = mark.args[0]
                names = names.replace(" ", "").split(",") if isinstance(names, str) else names
                if mark.name == "parametrize" and name in names:
                    row = list(mark.args[1])[index]
                    row = getattr(row, "values", row if len(names) > 1 else [row])
                    return row[list(names).index(name)]
        ''',
}

_TEXT = '''
"""{title}

Run it in the subject's folder ({revision}): python script.py
{promise}
Exit status 1: the failure shows; 0: it does not; 2: something else went wrong.
{needs}
"""

{imports}

EXCEPTION, LINE = {exception}, {source}
TEST = Path(sys.argv[1] if len(sys.argv) > 1 else {test_file}).resolve()
sys.path[:0] = [str(Path(folder).resolve()) for folder in {folders}]


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seed_all(seed):
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)

{helpers}
def run(seed):
    seed_all(seed)
{statements}


def failed_at(error):
    """The line of the test file that an error came through last."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.line for frame in reversed(frames) if frame.filename == str(TEST)), "")


{loads}
for seed in {seeds}:
    try:
        run(seed)
    except BaseException as error:
        if type(error).__name__ != EXCEPTION or not failed_at(error).startswith(LINE):
            traceback.print_exc()
            sys.exit(2)
        print(f"seed {{seed}}: {{EXCEPTION}} at {{failed_at(error)}}")
        print(*str(error).splitlines()[:6], sep="\\n")
        sys.exit(1)
print("the failure did not show")
'''


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a script tries.

    Args:
        seeds: in order.
        tries: of each seed.
    """

    seeds: Sequence[int]
    tries: int = 1

    @property
    def trials(self) -> int:
        """Runs of the test at most."""
        return len(self.seeds) * self.tries


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What the script is about.

    Args:
        test: pytest's name of the test.
        test_file: relative to the subject, or a bare name.
        revision: of the subject.
        python_path: folders relative to the subject.
        environment: variables that the cell sets for the test.
        versions: what the cell imported, such as "torch 2.11.0".
        exception: name of the promised exception's type.
        source: the line of the test file that it comes from, or "" where that is not known.
    """

    test: str
    test_file: str
    revision: str
    python_path: Sequence[str]
    environment: Mapping[str, str]
    versions: Sequence[str]
    exception: str
    source: str


def script_text(about: Subject, call: Mapping[str, Any], plan: Plan) -> str:
    """The script; `call` is what `calling.py` told.

    Raises:
        ValueError: it would be longer than `LINES`.
    """
    helpers = "\n\n".join(textwrap.dedent(_HELPERS[name]).strip() for name in call["helpers"])
    text = _TEXT.lstrip("\n").format(
        title=_docstring(f"{about.test} fails: shown without pytest, which is not run."),
        revision=_docstring(about.revision),
        promise=_wrapped(_docstring(_promise(about, plan))),
        needs=_wrapped(_docstring(f"Seen with {', '.join(about.versions)}.")),
        imports=_imports(call, about.environment),
        exception=quoted(about.exception),
        source=quoted(about.source),
        test_file=quoted(about.test_file),
        folders=f"[{', '.join(map(quoted, _folders(about, call)))}]",
        helpers=f"\n{helpers}\n\n" if helpers else "",
        statements=textwrap.indent("\n".join(call["statements"]), "    "),
        loads=_loads(call),
        seeds=f"{list(plan.seeds)!r}" + (f" * {plan.tries}" if plan.tries > 1 else ""),
    )
    lines = text.count("\n")
    if lines > LINES:
        raise ValueError(f"a script would take {lines} lines, and {LINES} are the most that one reads")
    return text


def quoted(text: str) -> str:
    """A Python text in double quotes, in ASCII."""
    return json.dumps(text)


def _promise(about: Subject, plan: Plan) -> str:
    at = f" at `{about.source}`" if about.source else ""
    if plan.trials == 1:
        return f"Promise: with seed {plan.seeds[0]} the test raises {about.exception}{at}."
    return (
        f"Promise: one of {ui.count(plan.trials, 'run')} raises {about.exception}{at}, with 99 % probability."
    )


def _imports(call: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """The imports, and before those of others the variables that they look at once."""
    plain = {"importlib.util", "random", "sys", "traceback"} | set(call["imports"])
    others = plain & {"torch", "pytest"}
    plain |= {"os"} if environment else set()
    lines = [*(f"import {name}" for name in sorted(plain - others)), "from pathlib import Path"]
    if environment:
        pairs = ", ".join(f"{quoted(name)}: {quoted(value)}" for name, value in sorted(environment.items()))
        lines += ["", f"os.environ.update({{{pairs}}})  # before anything is imported that looks at it"]
    return "\n".join([*lines, *([""] if others else []), *(f"import {name}" for name in sorted(others))])


def _folders(about: Subject, call: Mapping[str, Any]) -> list[str]:
    return list(
        dict.fromkeys(
            [call["folder"], *(name for name in about.python_path if not name.startswith(".repro"))]
        )
    )


def _loads(call: Mapping[str, Any]) -> str:
    lines = [
        f'conftest_{index} = load("conftest_{index}", {quoted(name)})'
        for index, name in enumerate(call["conftests"])
    ]
    return "\n".join([*lines, f"test = load({quoted(call['module'])}, str(TEST))"])


def _docstring(text: str) -> str:
    return ui.one_line(text, 300).replace("\\", "/").replace('"""', "'''").rstrip('"')


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, break_on_hyphens=False))

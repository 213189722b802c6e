"""From a test to the code that it is about: which folders it imports from, and which packages it needs."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement

from repro.starting.helpers import helpers_of, needed_or_skipped
from repro.subject.declared import at, read_build_files
from repro.subject.layout import find_python_path, top_level
from repro.subject.parsing import parse

BUILD_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_BESIDE = (*BUILD_FILES, "pytest.ini", "tox.ini", "conftest.py")
"""Files at the top of a project that its tests may need."""
_GIVEN = frozenset({"torch", "triton", "pytest", "numpy"})
"""What every cell holds, in the version that its stack needs."""
_BROUGHT = frozenset(
    {
        "_pytest",
        "filelock",
        "fsspec",
        "jinja2",
        "networkx",
        "packaging",
        "pluggy",
        "sympy",
        "typing_extensions",
    }
)
"""What torch and pytest bring along, in any version."""
_OTHER_NAMES = {"pyyaml": "yaml", "pillow": "PIL", "opencv-python": "cv2", "scikit-learn": "sklearn"}
"""Distributions whose module has quite another name."""
MOST_FILES = 3000

_TESTS = re.compile(r"(?:unit_?|.*_)?(?:tests?|testing)")

Projects = Mapping[str, str]
"""By module name, the folder that it is imported from, relative to the repository's top."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where the code under test is.

    Args:
        modules: the repository's own modules that the test reaches, directly or not.
        python_path: folders that they are imported from.
        is_found: whether the kit finds the same folders by itself.
        parts: folders and files that make up the subject.
        requirements: declared requirements that the code imports, beside what a cell holds anyway.
        unknown: modules that the code imports and nothing declares.
    """

    modules: tuple[str, ...]
    python_path: tuple[str, ...]
    is_found: bool
    parts: tuple[str, ...]
    requirements: tuple[str, ...]
    unknown: tuple[str, ...]


def layout_of(root: Path, names: Sequence[str], test_file: str, test: str = "") -> Layout:
    """What a test file needs of its repository.

    Args:
        root: top of the repository.
        names: all of its files, relative.
        test_file: relative.
        test: the test's name, as pytest has it.
    """
    projects = sorted({_parent(name) for name in names if PurePosixPath(name).name in BUILD_FILES} | {""})
    modules = _modules(root, projects)
    tests = _test_part(names, test_file)
    first = [test_file, *_conftests(names, test_file)]
    helpers = helpers_of(root, first, modules)
    reached, imported = _closure(root, modules, [*first, *helpers.files], tests)
    imported |= needed_or_skipped(root, test_file, test)
    folders = tuple(dict.fromkeys(modules[name] for name in sorted(reached)))
    own = _project_of(projects, test_file)
    folders = folders or tuple(_join(own, folder) for folder in find_python_path(root / own))
    used = {_project_of(projects, f"{folder}/x") for folder in folders} | {own}
    declared = [each for project in sorted(used) for each in _declared(root / project)]
    beside = {PurePosixPath(name).stem for name in names if _parent(name) == _parent(test_file)}
    foreign = imported - set(modules) - helpers.names - beside - _GIVEN - sys.stdlib_module_names
    wanted = [each for each in declared if _module_of(each) in foreign]
    return Layout(
        modules=tuple(sorted(reached)),
        python_path=folders,
        is_found=folders == find_python_path(root),
        parts=_parts(root, [modules[name] for name in reached], reached, used, {tests, *helpers.parts}),
        requirements=tuple(dict.fromkeys(wanted)),
        unknown=tuple(sorted(foreign - _BROUGHT - {_module_of(each) for each in wanted})),
    )


def _modules(root: Path, projects: Iterable[str]) -> dict[str, str]:
    """The repository's own modules; those nearest to its top win over others of the same name."""
    found: dict[str, str] = {}
    for project in projects:
        for folder in find_python_path(root / project):
            for module in top_level(root / project / folder):
                found.setdefault(module, _join(project, folder))
    return found


def _closure(root: Path, modules: Projects, tests: Sequence[str], part: str) -> tuple[set[str], set[str]]:
    """Own modules that test files reach, and every module that any of that code needs when it is loaded.

    What stands under an `if` is not needed where `find_spec` asks for it, be it in another file.
    """
    reached: set[str] = {name for name, folder in modules.items() if _holds(folder, name, part)}
    imported, under_if, asked = set[str](), set[str](), set[str]()
    pending = [root / name for name in tests]
    pending += [file for name in reached for file in _files(root / modules[name], name)]
    seen = 0
    while pending and seen < MOST_FILES:
        path, seen = pending.pop(), seen + 1
        found = _imports(path)
        imported, under_if, asked = imported | found.at_load, under_if | found.under_if, asked | found.asked
        for name in (found.anywhere & set(modules)) - reached:
            reached.add(name)
            pending += _files(root / modules[name], name)
    return reached, imported | (under_if - asked)


def _holds(folder: str, module: str, part: str) -> bool:
    """Whether a test lies inside a module's own folder."""
    return f"{part}/".startswith(f"{_join(folder, module)}/")


def _files(folder: Path, module: str) -> list[Path]:
    single = folder / f"{module}.py"
    return [single] if single.is_file() else sorted((folder / module).rglob("*.py"))


@dataclass(frozen=True, kw_only=True)
class _Imports:
    """Top-level names that a file imports.

    Args:
        at_load: when it is loaded; what stands in a `try` may fail, and is not needed.
        under_if: the same, on a condition.
        anywhere: in functions, too.
        asked: names that it asks `find_spec` for.
    """

    at_load: set[str] = field(default_factory=set)
    under_if: set[str] = field(default_factory=set)
    anywhere: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)


def _imports(path: Path) -> _Imports:
    try:
        module = parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return _Imports()
    return _Imports(
        at_load=set(_names(module.body)),
        under_if=set(_names(_under_if(module))),
        anywhere=set(_names(ast.walk(module))),
        asked=set(_asked(module)),
    )


def _under_if(module: ast.Module) -> Iterator[ast.AST]:
    """Statements that run at import on a condition, but for those that are for type checkers."""
    pending = [node for node in module.body if isinstance(node, ast.If)]
    while pending:
        condition = pending.pop()
        if "TYPE_CHECKING" not in ast.unparse(condition.test):
            for node in (*condition.body, *condition.orelse):
                if isinstance(node, ast.If):
                    pending.append(node)
                yield node


def _asked(module: ast.Module) -> Iterator[str]:
    """Top-level names of modules in calls such as `importlib.util.find_spec("einops")`."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "find_spec":
            named = (one.value for one in node.args[:1] if isinstance(one, ast.Constant))
            yield from (str(name).partition(".")[0] for name in named)


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


# Files of the subject -------------------------------------------------------------------------------------


def _parts(
    root: Path, folders: Sequence[str], reached: Iterable[str], projects: Iterable[str], tests: set[str]
) -> tuple[str, ...]:
    """The parts of the repository that the subject is made of, none inside another."""
    parts = {*tests, "conftest.py", *(_join(project, name) for project in projects for name in _BESIDE)}
    for folder, module in zip(folders, reached, strict=True):
        parts.add(folder if folder != "." else module if (root / module).is_dir() else f"{module}.py")
    there = sorted(part for part in parts if (root / part).exists())
    return tuple(part for part in there if not any(part.startswith(f"{other}/") for other in there))


def _test_part(names: Sequence[str], test_file: str) -> str:
    """The topmost folder of tests above a test; else its own folder, unless that is a package or the top."""
    parents = [parent.as_posix() for parent in reversed(PurePosixPath(test_file).parents)]
    for parent in parents:
        if _TESTS.fullmatch(parent.rpartition("/")[2]):
            return parent
    own = parents[-1]
    return test_file if own == "." or f"{own}/__init__.py" in names else own


def _conftests(names: Sequence[str], test_file: str) -> list[str]:
    parents = {parent.as_posix() for parent in PurePosixPath(test_file).parents}
    return [
        name
        for name in names
        if PurePosixPath(name).name == "conftest.py" and (_parent(name) or ".") in parents
    ]


# Requirements ---------------------------------------------------------------------------------------------


def _declared(project: Path) -> list[str]:
    """Requirements that a project's build files declare, those of extras and groups too."""
    files = read_build_files(project)
    extras = at(files.pyproject, "project", "optional-dependencies")
    config = at(files.config, "options", "install_requires") or ""
    groups = [
        at(files.pyproject, "project", "dependencies"),
        files.setup.get("install_requires"),
        config.splitlines(),
    ]
    for more in (extras, at(files.pyproject, "dependency-groups")):
        groups += more.values() if isinstance(more, Mapping) else []
    texts = [text for group in groups if isinstance(group, list) for text in group if isinstance(text, str)]
    return [text for text in texts if _is_requirement(text)]


def _is_requirement(text: str) -> bool:
    try:
        return Requirement(text).url is None
    except InvalidRequirement:
        return False


def _module_of(requirement: str) -> str:
    name = re.sub(r"[-_.]+", "-", Requirement(requirement).name).lower()
    return _OTHER_NAMES.get(name, name.replace("-", "_"))


def _project_of(projects: Sequence[str], name: str) -> str:
    """The innermost project that a file lies in."""
    return max((each for each in projects if not each or name.startswith(f"{each}/")), key=len)


def _parent(name: str) -> str:
    return name.rpartition("/")[0]


def _join(folder: str, name: str) -> str:
    parts = [part for part in (folder, name) if part not in ("", ".")]
    return "/".join(parts) or "."

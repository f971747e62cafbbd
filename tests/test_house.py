# SPDX-License-Identifier: MIT
"""What holds of all modules, and no linter that we use can say."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

import pytest

from burst.provider_type import PROVIDERS
from tests.stages import STAGES, files_of

TOP = Path(__file__).parents[1]
TYPES = {point.name for point in entry_points(group=PROVIDERS)}


class Module(NamedTuple):
    """What a Python file imports and defines."""

    imports: list[tuple[str, str]]
    """The modules that names are imported from, each with the name."""
    classes: list[str]
    decodes: list[str]
    """Calls of msgspec that decode a type which `burst.decode` has not prepared."""
    compared: list[str]
    """Comparisons and patterns of `match` that have the type of a provider."""


def modules(*under: str) -> Iterator[tuple[Path, Module]]:
    """All Python files under these directories, read once for all tests."""
    for directory in under:
        for path in sorted((TOP / directory).rglob("*.py")):
            yield path.relative_to(TOP), read(path)


@functools.cache
def read(path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    froms = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return Module(
        [(n.module, alias.name) for n in froms if n.module for alias in n.names],
        [node.name for node in tree.body if isinstance(node, ast.ClassDef)],
        [ast.unparse(node) for node in nodes if decodes_unprepared(node)],
        # No node is kept: the garbage collector would visit all, again and again.
        [ast.unparse(node) for node, words in compared_words(nodes) if words & TYPES],
    )


def decodes_unprepared(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name = node.func.attr
    if name not in ("convert", "Decoder", "decode"):
        return False
    if name == "decode" and not node.keywords:
        return False
    prepared = "prepared(" in ast.unparse(node)
    return ast.unparse(node.func).startswith("msgspec.") and not prepared


# It reads all files, which takes three times as long where coverage traces it.
@pytest.mark.no_cover
def test_no_module_imports_a_private_name_of_another() -> None:
    private = [
        f"{path}: {module}.{name}"
        for path, found in modules("burst", "plugins", "tests", "benchmarks")
        for module, name in found.imports
        # Flux's own modules are private by name, and all there is.
        if name.startswith("_")
        and not name.endswith("__")
        and not module.startswith("_flux")
    ]
    assert private == []


def test_nothing_imports_a_test_module() -> None:
    tests = [
        f"{path}: {module}"
        for path, found in modules("tests", "benchmarks")
        for module, _ in found.imports
        if module.split(".")[-1].startswith("test_")
    ]
    assert tests == []


_OTHER_WORDS = {
    "isolated.kind in ('command', 'batch')": "kinds of isolated bursts",
    "self.kind in ('job', 'command', 'batch')": "kinds of isolated bursts",
    "Isolated(kind='command')": "kinds of isolated bursts",
    "parts.scheme not in ('', 'local')": "schemes of Flux' URIs",
    "command[:3] != ['flux', 'broker', '{{tmpdir}}/script']": "a program",
    "'command' in snapshot.untold": "where notices go",
    "'command' not in plugin": "a key of a kubeconfig",
    "{'apiVersion', 'kind'} <= manifest.keys()": "keys of a manifest",
    "key not in ('apiVersion', 'kind', 'metadata', 'spec')": "keys of a manifest",
}
"""What is compared with a word that is a provider's type too, and what it is there."""


def words_of(node: ast.AST) -> set[object]:
    """The constants in an operand, or in a tuple, set or list that it is."""
    inside = getattr(node, "elts", [node])
    return {each.value for each in inside if isinstance(each, ast.Constant)}


def compared_words(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, set[object]]]:
    """Each comparison and each pattern of `match` among them, and the words in it."""
    for node in nodes:
        if isinstance(node, ast.Compare):
            sides = [words_of(side) for side in (node.left, *node.comparators)]
            yield node, set().union(*sides)
        elif isinstance(node, ast.match_case):
            below = ast.walk(node.pattern)
            yield node.pattern, set().union(*map(words_of, below))


def test_no_type_of_providers_is_named_outside_its_package() -> None:
    """What holds of one type is a fact that its `ProviderType` tells."""
    assert len(TYPES) >= 7
    packages = [f"plugins/burst_{kind}" for kind in TYPES]
    found = {
        text: str(path)
        for path, module in modules("burst", "plugins")
        if not str(path).startswith(tuple(packages))
        for text in module.compared
    }
    unknown = {text: where for text, where in found.items() if text not in _OTHER_WORDS}
    assert unknown == {}
    assert found.keys() == _OTHER_WORDS.keys(), "take out what is compared no more"


def test_a_comparison_with_a_type_is_found() -> None:
    code = """
if table.type == "x" or kind in {"none", "y"}: pass
match kind:
    case "z" | "w": pass
"""
    found = [words for _, words in compared_words(ast.walk(ast.parse(code)))]
    assert set().union(*found) >= {"x", "none", "y", "z", "w"}


def test_a_public_class_name_is_defined_once() -> None:
    places = defaultdict(list)
    for path, found in modules("burst", "plugins"):
        for name in found.classes:
            if not name.startswith("_"):
                places[name].append(str(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_types_are_prepared_before_they_are_decoded() -> None:
    """Else two threads that decode a type for the first time end the process."""
    places = {
        str(path): found.decodes
        for path, found in modules("burst", "plugins")
        if found.decodes and str(path) != "burst/decode.py"
    }
    assert places == {}


def test_tests_are_found_where_no_program_is(tmp_path: Path) -> None:
    """A new machine has no Flux, no munge, no docker: their tests are skipped there."""
    files = {name for stage in STAGES for name in files_of(stage)}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *files]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "tests/nodes/test_view.py::" in done.stdout

# SPDX-License-Identifier: MIT
"""The sample of mutants: a fixed choice of places in the product's source.

A mutant is known by its file, function, operator and occurrence in that function, and
is in the sample by a hash of these: lines that move elsewhere do not change it, tests
never do. cosmic-ray's operators make the mutants, and two of ours.

Left out is what no test of behaviour can catch or fail to: annotations and unions of
types, `if TYPE_CHECKING`, `__all__`, asserts and `zip(strict=True)` (they state what
always holds), `frozen`, `kw_only` and `slots` of a class (mypy holds them), arguments
of loggers, and what compiles to the same or not at all. Docstrings have no operator.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

ROOMS = ("burst/core", "burst/model", "burst/flux", "burst/kits")


class RemoveCall:
    """Replaces a statement that is one call with `pass`."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        called = node.type == "atom_expr" and node.get_last_leaf().value == ")"
        if called and node.parent.type == "simple_stmt":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        nothing = parso.parse("pass").children[0]
        nothing.prefix = node.get_first_leaf().prefix
        return nothing


class NegateFilter:
    """Negates the condition of a comprehension."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "comp_if":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        condition = node.children[1].get_code(include_prefix=False)
        node.children[1] = parso.parse(f"not ({condition})").children[0]
        node.children[1].get_first_leaf().prefix = " "
        return node


# A boundary moved and a condition turned round; not each operator into each other, as
# most of those are errors of type that any test catches.
_BINARY = "Add_Sub Sub_Add Mul_FloorDiv Div_Mul FloorDiv_Mul Mod_FloorDiv"
_BINARY += " BitOr_BitAnd BitAnd_BitOr LShift_RShift RShift_LShift"
_COMPARED = "Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_GtE LtE_Gt Gt_LtE GtE_Lt"
_COMPARED += " Is_IsNot IsNot_Is"
_OTHERS = "ReplaceUnaryOperator_Delete_Not ReplaceUnaryOperator_Delete_USub AddNot"
_OTHERS += (
    " ReplaceTrueWithFalse ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd"
)
_OTHERS += " ReplaceBreakWithContinue ReplaceContinueWithBreak ExceptionReplacer"
_OTHERS += " NumberReplacer ZeroIterationForLoop"
_NAMES = [f"ReplaceBinaryOperator_{name}" for name in _BINARY.split()]
_NAMES += [f"ReplaceComparisonOperator_{name}" for name in _COMPARED.split()]
OPERATORS: dict[str, Any] = {"RemoveCall": RemoveCall(), "NegateFilter": NegateFilter()}
for _name in _NAMES + _OTHERS.split():
    OPERATORS[_name] = get_operator(f"core/{_name}")()


# Kinds of nodes, alone, with their first word, or with the number of a child.
_NEVER = {
    *("assert_stmt", "import_from", "decorator", ("annassign", 1), ("tfpdef", 2)),
    *(("argument", name) for name in ("strict", "frozen", "kw_only", "slots")),
    *(("atom_expr", name) for name in ("isinstance", "cast", "logging", "log")),
    ("expr_stmt", "__all__"),
}


class Mutant(NamedTuple):
    """One change of one place; `occurrence` counts in the function."""

    file: str
    function: str
    operator: str
    occurrence: int

    def order(self, seed: int) -> str:
        """Say where it comes among all: by its identity alone."""
        return hashlib.sha256(f"{seed} {self}".encode()).hexdigest()


class Place(NamedTuple):
    """Where a mutant is in one source; `nth` counts in the file, from 0."""

    start: tuple[int, int]
    nth: int
    # Of the statement's first line, and of what is mutated.
    lines: tuple[int, int]
    # Whether it runs when the file is imported, not when something is called.
    imported: bool


def sources(tree: Path, room: str) -> list[Path]:
    """Return the files of a room."""
    return sorted((tree / room).rglob("*.py"))


def _above(node: Any) -> Iterator[tuple[Any, Any]]:
    """Give each parent, after the child of it that the node is in."""
    while node.parent:
        yield node, node.parent
        node = node.parent


def _function(node: Any) -> str:
    kinds = ("funcdef", "classdef")
    names = [above.name.value for _, above in _above(node) if above.type in kinds]
    return ".".join(reversed(names))


def _tells_nothing(node: Any, operator: str) -> bool:
    """Say whether no test can tell the mutant from the original, by its place."""
    if node.type == "assert_stmt" or ("BitOr" in operator and not _function(node)):
        return True  # or a union of types with a name
    if node.get_code(include_prefix=False).startswith("if TYPE_CHECKING"):
        return True
    for child, above in _above(node):
        nth, start = above.children.index(child), above.children[0]
        name = (above.type, start.get_code(include_prefix=False))
        if above.type in _NEVER or name in _NEVER or (above.type, nth) in _NEVER:
            return True
        if above.type == "funcdef" and above.annotation is child:
            return True
    return False


def _place(node: Any, start: tuple[int, int], nth: int) -> Place:
    pairs = list(_above(node))
    called = (above for child, above in pairs if above.children[-1] is child)
    imported = not any(above.type in ("funcdef", "lambdef") for above in called)
    whole = ("file_input", "suite", "parameters")
    statement = next(
        child
        for child, above in pairs
        if above.type in whole or above.type.endswith("_stmt")
    )
    return Place(start, nth, (statement.start_pos[0], node.start_pos[0]), imported)


@cache
def mutants_of(tree: Path, path: Path) -> dict[Mutant, Place]:
    """Return all mutants of a file, one for each place and operator."""
    found: dict[Mutant, Place] = {}
    in_file: Counter[str] = Counter()
    in_function: Counter[tuple[str, str]] = Counter()
    for node in ast_nodes(get_ast(path.read_text())):
        for operator, mutation in OPERATORS.items():
            for start, _ in mutation.mutation_positions(node):
                nth, function = in_file[operator], _function(node)
                occurrence = in_function[function, operator]
                in_file[operator] += 1
                in_function[function, operator] += 1
                if not _tells_nothing(node, operator):
                    name = path.relative_to(tree).as_posix()
                    mutant = Mutant(name, function, operator, occurrence)
                    found[mutant] = _place(node, start, nth)
    return found


def mutated(tree: Path, mutant: Mutant) -> tuple[str, Place] | None:
    """Return the changed source, or None where there is no such place or no change."""
    path = tree / mutant.file
    place = mutants_of(tree, path).get(mutant) if path.exists() else None
    if place is None:
        return None
    source = path.read_text()
    changed = mutate_code(source, OPERATORS[mutant.operator], place.nth)
    try:
        compiled = [compile(text, "", "exec") for text in (source, changed or source)]
    except SyntaxError:
        return None
    same = compiled[0] == compiled[1]
    return None if same or changed is None else (changed, place)


def sample(tree: Path, count: int, seed: int) -> list[Mutant]:
    """Choose `count` mutants, of each room in proportion to its lines."""
    files = {room: sources(tree, room) for room in ROOMS}
    lines = {
        room: sum(path.read_text().count("\n") for path in paths)
        for room, paths in files.items()
    }
    chosen: list[Mutant] = []
    done = 0
    for room, paths in files.items():
        done += lines[room]
        wanted = round(count * done / sum(lines.values()))
        at: dict[tuple[Path, tuple[int, int]], list[Mutant]] = defaultdict(list)
        for path in paths:
            for mutant, place in mutants_of(tree, path).items():
                at[path, place.start].append(mutant)
        # One for each place: there are many ways to compare.
        ones = [min(them, key=lambda one: one.order(seed)) for them in at.values()]
        for mutant in sorted(ones, key=lambda one: one.order(seed)):
            if len(chosen) < wanted and mutated(tree, mutant):
                chosen.append(mutant)
    return chosen

# SPDX-License-Identifier: MIT
"""The sample of mutants: a fixed choice of places in the product's source.

A place is in the sample by a hash of its file, its line's text and the operator: lines
that move elsewhere do not change it, tests never do. cosmic-ray's operators make the
mutants, and two of ours.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

PACKAGES = ("burst", "plugins")
_LEFT_OUT = (
    # Helpers of tests, and the tour of `burst demo`.
    "burst/testing",
    "plugins/burst_ensemble/testing",
    "burst/demo",
    # Programs that Flux runs, in no process of a test.
    "burst/flux_setup/files",
)


def room_of(file: str) -> str:
    """Return the directory of a file, as the table has it: of the first two levels."""
    return "/".join(file.split("/")[:-1][:2])


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
_NAMES = {
    "ReplaceBinaryOperator_": "Add_Sub Sub_Add Mul_FloorDiv Div_Mul FloorDiv_Mul "
    "Mod_FloorDiv BitOr_BitAnd BitAnd_BitOr LShift_RShift RShift_LShift",
    "ReplaceComparisonOperator_": "Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt "
    "Lt_GtE LtE_Gt Gt_LtE GtE_Lt Is_IsNot IsNot_Is",
    "Replace": "UnaryOperator_Delete_Not UnaryOperator_Delete_USub TrueWithFalse "
    "FalseWithTrue AndWithOr OrWithAnd BreakWithContinue ContinueWithBreak",
    "": "AddNot ExceptionReplacer NumberReplacer ZeroIterationForLoop",
}
OPERATORS: dict[str, Any] = {"RemoveCall": RemoveCall(), "NegateFilter": NegateFilter()}
for _prefix, _words in _NAMES.items():
    for _word in _words.split():
        OPERATORS[_prefix + _word] = get_operator(f"core/{_prefix}{_word}")()


class Mutant(NamedTuple):
    """One change of one place; `occurrence` counts the operator's in the file.

    `imported`: it runs when the file is imported, not when something is called.
    """

    file: str
    operator: str
    occurrence: int
    line: int
    imported: bool


class _Untold(ast.NodeTransformer):
    """Removes what no test of behaviour can tell: what mypy holds, logs, asserts."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for types in {"annotation", "returns"} & {*node._fields}:
            setattr(node, types, None)
        return super().generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node.func).partition(".")[0] in ("_LOGGER", "cast"):
            node.args = []
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST | None:
        untold = node.arg in ("strict", "frozen", "kw_only", "slots")
        return None if untold else self.generic_visit(node)


@cache
def _told(source: str) -> str:
    with suppress(SyntaxError):
        return ast.dump(_Untold().visit(ast.parse(source)))
    return ""


def mutated(tree: Path, mutant: Mutant) -> str | None:
    """Return the changed source, or None if no test could tell it from the other."""
    source = (tree / mutant.file).read_text()
    changed = mutate_code(source, OPERATORS[mutant.operator], mutant.occurrence)
    same = not changed or _told(changed) in ("", _told(source))
    return None if same else str(changed)


def _in_order(tree: Path, path: Path, seed: int) -> list[tuple[str, Mutant]]:
    """Return one mutant of each place of a file, with where it comes among all."""
    source, name = path.read_text(), path.relative_to(tree).as_posix()
    occurrences, alike = Counter[str](), Counter[str]()
    chosen: dict[tuple[int, int], tuple[str, Mutant]] = {}
    for node in ast_nodes(get_ast(source)):
        for operator, mutation in OPERATORS.items():
            for start, _ in mutation.mutation_positions(node):
                text = f"{name} {operator} {source.splitlines()[start[0] - 1].strip()}"
                key = f"{seed} {text} {alike[text]}"
                order = hashlib.sha256(key.encode()).hexdigest()
                # There are many ways to compare; one for each place.
                if start not in chosen or order < chosen[start][0]:
                    imported = not node.search_ancestor("funcdef", "lambdef")
                    made = (name, operator, occurrences[operator], start[0], imported)
                    chosen[start] = (order, Mutant(*made))
                alike[text] += 1
                occurrences[operator] += 1
    return [*chosen.values()]


def sample(tree: Path, count: int, seed: int) -> list[Mutant]:
    """Choose `count` mutants, of each room in proportion to its lines."""
    rooms: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(p for top in PACKAGES for p in (tree / top).rglob("*.py")):
        name = path.relative_to(tree).as_posix()
        if not name.startswith(_LEFT_OUT):
            rooms[room_of(name)].append(path)
    lines = [
        sum(len(path.read_text().splitlines()) for path in files)
        for files in rooms.values()
    ]
    chosen: list[Mutant] = []
    for place, files in enumerate(rooms.values(), 1):
        wanted = round(count * sum(lines[:place]) / sum(lines))
        ordered = sorted(one for p in files for one in _in_order(tree, p, seed))
        for _, mutant in ordered:
            if len(chosen) < wanted and mutated(tree, mutant):
                chosen.append(mutant)
    return chosen

# SPDX-License-Identifier: MIT
"""Finds what each key of a table is for: the docstring below it in the class.

Only the source has these docstrings; without the source no key has one.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Mapping


@functools.cache
def key_docs(table: type) -> Mapping[str, str]:
    """Return the docstring of each field of a table, including inherited fields."""
    found: dict[str, str] = {}
    for each in reversed(table.__mro__):
        if each.__module__.partition(".")[0] in {"builtins", "msgspec"}:
            continue
        try:
            source = textwrap.dedent(inspect.getsource(each))
        except (OSError, TypeError):
            continue
        found |= _docs_in(ast.parse(source).body[0])
    return found


def tell_keys(table: type, fields: Mapping[str, str]) -> str:
    """Return these keys as text, each with the beginning of its docstring.

    `fields` are names of fields, by the keys in the file.
    """
    docs = key_docs(table)
    return ", ".join(_tell(key, docs.get(name, "")) for key, name in fields.items())


def _tell(key: str, text: str) -> str:
    words = re.split(r"[.:;](?:\s|$)", text, maxsplit=1)[0]
    # A link is for the pages; a terminal shows its text.
    words = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", words)
    meaning = " ".join(words.split())
    if not meaning:
        return key
    # A name such as GKE stays as it is.
    if meaning[1:2].islower() or meaning[1:2] == " ":
        meaning = meaning[0].lower() + meaning[1:]
    return f"{key} ({meaning})"


def _docs_in(node: ast.stmt) -> dict[str, str]:
    """Return the docstring below each field that has one."""
    found: dict[str, str] = {}
    assert isinstance(node, ast.ClassDef)
    name = None
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            name = line.target.id
        elif (
            name
            and isinstance(line, ast.Expr)
            and isinstance(line.value, ast.Constant)
            and isinstance(line.value.value, str)
        ):
            found[name] = inspect.cleandoc(line.value.value)
            name = None
        else:
            name = None
    return found

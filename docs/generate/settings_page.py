# SPDX-License-Identifier: MIT
"""docs/settings.md: each key of burst.toml, from the classes that read it.

What a key means is the docstring below it in the class, which only its source has.
"""

from __future__ import annotations

import datetime
import enum
import inspect
import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from burst_command.provider import CommandProvider
from burst_eks.provider import EksProvider
from burst_flux.provider import FluxProvider
from burst_gke.provider import GkeProvider
from burst_kind.provider import KindProvider
from burst_kube.provider import KubeProvider
from burst_local.provider import LocalProvider
from burst_slurm.provider import SlurmProvider
from burst_vm.provider import VmProvider

from burst.config import RANGES, Price, ProviderTable, Seconds, Settings
from burst.config.convert import PackageTable, SecondsOrNumber, SecondsOrOff
from burst.config.key_docs import key_docs
from burst.extensions import load_all
from burst.kits.node_settings import NodeSettings
from burst.kits.pods import PodSettings
from burst.model.fsd import format_fsd

_HEAD = """\
# Settings

Each key of `burst.toml`. This page is made from the code by `make docs`; `burst config`
prints the effective values, and where each comes from. The file is the one that `-c`
names, else `$BURST_CONFIG`, `~/.config/burst/burst.toml`, `/etc/flux/burst.toml`. A key
that is not listed here is an error, and the error names the key.

A *duration* is text with a unit, `ms`, `s`, `m`, `h` or `d`, such as `"90s"` or
`"1.5h"`; `"inf"` has no end. A *price* is an amount for an hour, from 0; all prices
have the same unit of money. A *number* may have a fraction. *List* and *table* are
those of TOML. A key whose default is *none* has no effect until it is set, unless its
text says otherwise.
"""

# Words alone: GitHub and mkdocs link in different ways to what has a comma or "=".
_OF_TYPE = " of type "
_PROVIDERS: tuple[tuple[str, type[msgspec.Struct], str], ...] = (
    ('"local"', LocalProvider.Settings, "Processes on the lead's host."),
    (
        '"command", "flux" or "slurm"',
        NodeSettings,
        "Keys of all providers whose nodes share a directory with this host.",
    ),
    (
        '"command"',
        CommandProvider.Settings,
        "Nodes that a site's own program begins and ends ([command.md](command.md)).",
    ),
    (
        '"flux"',
        FluxProvider.Settings,
        "Jobs of another Flux ([flux.md](flux.md)).",
    ),
    (
        '"kube", "kind", "gke" or "eks"',
        PodSettings,
        "Keys of all providers whose followers are pods"
        " ([kubernetes.md](kubernetes.md)).",
    ),
    ('"kube"', KubeProvider.Settings, "Any cluster."),
    ('"kind"', KindProvider.Settings, "A kind cluster."),
    ('"gke"', GkeProvider.Settings, "Google Kubernetes Engine."),
    (
        '"eks"',
        EksProvider.Settings,
        "Node groups in Amazon EKS ([eks.md](eks.md)).",
    ),
    ('"slurm"', SlurmProvider.Settings, "Slurm jobs ([slurm.md](slurm.md))."),
    ('"vm"', VmProvider.Settings, "Virtual machines of a cloud ([vm.md](vm.md))."),
)
_PLAIN = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Seconds: "duration",
    SecondsOrOff: 'duration or `"off"`',
    SecondsOrNumber: "duration or number of seconds",
    datetime.date: "date",
    Price: "price",
}


def settings_page() -> str:
    """Return the page, Markdown."""
    return _settings().text()


def undocumented_keys() -> list[str]:
    """Return the keys on the page that have no docstring, as `Class.key`."""
    return _settings().silent


def _settings() -> KeyPage:
    page = KeyPage(_HEAD)
    page.add_settings()
    return page


class KeyPage:
    """A page of tables of keys, made from classes."""

    def __init__(self, head: str) -> None:
        self._parts = [head]
        self._titles: dict[type, str] = {}
        self.silent: list[str] = []
        """Keys without a docstring, as `Class.key`."""

    def text(self) -> str:
        """Return the page, Markdown."""
        return "\n".join(self._parts)

    def add_settings(self) -> None:
        """Add each table of burst.toml."""
        for key, hint in get_type_hints(Settings, include_extras=True).items():
            for table in _tables_in(hint):
                if table not in (ProviderTable, PackageTable):
                    many = get_origin(hint) is tuple
                    self.add(table, f"[[{key}]]" if many else f"[{key}]")
            if hint == Mapping[str, float]:
                self._parts.append(_prose(f"`[{key}]`", key_docs(Settings)[key]))
        for name, package_table in load_all("burst.settings").items():
            self.add(package_table, f"[{name}]")
        self.add(ProviderTable, "[providers.NAME]", leave_out=("options",))
        for types, table, what in _PROVIDERS:
            self.add(table, f"[providers.NAME]{_OF_TYPE}{types}", lead=what)

    def add(
        self,
        table: type[msgspec.Struct],
        title: str,
        lead: str = "",
        leave_out: tuple[str, ...] = (),
    ) -> None:
        """Add a table and, after it, those that are its values; not the keys that are
        left out.
        """
        if table in self._titles:
            return
        self._titles[table] = title
        base = next((each for each in table.__mro__[1:] if each in self._titles), None)
        own = _own_keys(table, base)
        about = inspect.getdoc(table) or ""
        text = lead or _after_title(about)
        if base is not None:
            text += f" It also has the keys of {_code(self._titles[base])};"
            text += " this table lists the keys that it adds or changes."
        self._parts.append(_prose(_code(title), text))
        rows = list(self._rows(table, own, leave_out))
        if rows:
            head = ["| key | type | default | meaning |", "|---|---|---|---|"]
            self._parts.append("\n".join([*head, *rows, ""]))
        hints = get_type_hints(table, include_extras=True)
        for key, hint in hints.items():
            is_shown = key in own and key not in leave_out
            for below in _tables_in(hint) if is_shown else ():
                self.add(below, _title_below(title, key, hint))

    def _rows(
        self,
        table: type[msgspec.Struct],
        own: frozenset[str],
        leave_out: tuple[str, ...],
    ) -> Iterator[str]:
        hints = get_type_hints(table, include_extras=True)
        documented = key_docs(table)
        section = self._titles[table].strip("[]")
        for field in msgspec.structs.fields(table):
            if field.name not in own or field.name in leave_out:
                continue
            key = field.encode_name
            if field.name not in documented:
                self.silent.append(f"{table.__name__}.{key}")
            kind = _type_words(hints[field.name])
            bounds = _bounds(hints[field.name]) or _range_words(f"{section}.{key}")
            meaning = _cell(documented.get(field.name, ""))
            kind = f"{kind}, {bounds}" if bounds else kind
            yield f"| `{key}` | {_cell(kind)} | {_default(field)} | {meaning} |"


def _own_keys(table: type[msgspec.Struct], base: type | None) -> frozenset[str]:
    """Return the keys to list: all that a file may have, but those that the base has
    just so.
    """
    found: set[str] = set()
    for each in table.__mro__:
        if each is base:
            break
        found |= set(vars(each).get("__annotations__", {}))
    fields = {field.name for field in msgspec.structs.fields(table)}
    return frozenset(found & fields - getattr(table, "retired", {}).keys())


def _tables_in(hint: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for inside in get_args(hint):
        yield from _tables_in(inside)


def _title_below(title: str, key: str, hint: Any) -> str:
    """Return the header of a table within a table."""
    path = title.partition(_OF_TYPE)[0].strip("[]")
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(bare) is tuple:
        return f"[[{path}.{key}]]"
    if title.startswith("[["):
        return f"[[{path}]] {key}"
    # A table that may be left out has no name of its own; those of a mapping have.
    is_named = get_origin(hint) not in (None, Union, UnionType)
    inside = f".{key.upper().removesuffix('S')}" if is_named else ""
    types = title.partition(_OF_TYPE)[2]
    # What only one type has is told apart from what all of them have.
    of_type = f"{_OF_TYPE}{types}" if types.count('"') == 2 else ""
    return f"[{path}.{key}{inside}]{of_type}"


def _type_words(hint: Any) -> str:
    origin, inside = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Annotated:
        return _type_words(inside[0])
    if origin in (Literal, Union, UnionType):
        is_literal = origin is Literal
        found = [
            f"`{_toml(each)}`" if is_literal else _type_words(each)
            for each in inside
            if each is not type(None)
        ]
        return " or ".join(dict.fromkeys(found))
    if origin is tuple:
        return f"list of {_type_words(inside[0])}"
    if inside and inside[1] is not Any and not list(_tables_in(inside[1])):
        return f"table of {_type_words(inside[1])}"
    return "table"  # a Struct, a table by name of such, or of anything


def _bounds(hint: Any) -> str:
    """Return the range that the type of a key has, if any; not that of all prices."""
    if hint == Price:
        return ""
    for each in (hint, *get_args(hint)):
        for meta in getattr(each, "__metadata__", ()):
            if meta.min_length == 1:
                return "not empty"
            return _range(meta.ge, meta.le)
    return ""


def _range_words(key: str) -> str:
    if key not in RANGES:
        return ""
    low, high = RANGES[key]
    is_time = isinstance(_value_of(key), Seconds)
    show = format_fsd if is_time else _number
    return _range(low, None if math.isinf(high) else high, show)


def _value_of(key: str) -> Any:
    section, _, name = key.partition(".")
    return getattr(getattr(Settings(), section), name)


def _range(low: Any, high: Any, show: Any = None) -> str:
    show = show or _number
    if high is None:
        return f"from {show(low)}"
    return f"{show(low)} to {show(high)}"


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "must be set"
    value = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value is None or (isinstance(value, str) and not value):
        return "none"
    if isinstance(value, msgspec.Struct) or value == {}:
        return "none"
    return f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    if isinstance(value, Seconds):
        return f'"{value}"'
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value)


def _after_title(doc: str) -> str:
    """Return a table's docstring; its first words repeat the header."""
    text = re.sub(r"^`[^`]*`(?: with `[^`]*`)?[:.]\s*", "", doc)
    return text[:1].upper() + text[1:]


def _code(title: str) -> str:
    """Return the title of a table with its name as code."""
    name, of_type, types = title.partition(_OF_TYPE)
    return f"`{name}`{of_type}{types}"


def _prose(title: str, text: str) -> str:
    filled = "\n\n".join(
        textwrap.fill(" ".join(part.split()), 92, break_long_words=False)
        for part in text.split("\n\n")
    )
    return f"## {title}\n\n{filled}\n"


def _cell(text: str) -> str:
    line = " ".join(text.split()).replace("|", "\\|")
    return re.sub(r"\bdocs/([a-z]+\.md)\b", r"[\1](\1)", line)

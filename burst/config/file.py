# SPDX-License-Identifier: MIT
"""Reads and checks the settings file, and shows where it is looked for and where each
value came from.
"""

from __future__ import annotations

import math
import operator
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from burst.config.convert import PackageTable, Seconds, Table, convert, unknown_key
from burst.config.http import check_http
from burst.config.money import parse_budgets, parse_prices
from burst.config.notify import check_notify
from burst.config.policy import MOST_WORTH, parse_policy
from burst.config.standing import parse_standing
from burst.config.tables import LONGEST_OWNER, ProviderTable, Settings
from burst.errors import ConfigError
from burst.extensions import installed
from burst.extensions import load as load_extension
from burst.model.fsd import LONGEST, format_fsd
from burst.model.host import dns_label

VARIABLE = "BURST_CONFIG"
"""The environment variable that names the file."""
USUAL_PATHS = ("~/.config/burst/burst.toml", "/etc/flux/burst.toml")
"""The user's own file, then the site's; the first that exists is read."""
LOOKED_FOR = ", ".join((f"${VARIABLE}", *USUAL_PATHS))
"""The variable and the paths, as text."""


def load(path: Path) -> Settings:
    """Read and check a file. Raises ConfigError with file, key and a valid value."""
    return parse(read_toml(path), str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Return the file's tables unchecked. Raises ConfigError."""
    try:
        # Editors on Windows begin a file with a byte order mark.
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        other = "write one with burst lead init"
        if isinstance(error, PermissionError):
            other = "have its owner let this user read it"
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}",
            f"name another file with -c, or {other}",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not TOML: {_toml_words(error)}") from error


def _toml_words(error: Exception) -> str:
    """Return the message of tomllib, with tables written as in the file."""
    tables = re.compile(r"\(('[^()]*'),?\)")
    return tables.sub(
        lambda found: f"[{found[1].replace(chr(39), '').replace(', ', '.')}]",
        str(error),
    )


def parse(tables: Mapping[str, Any], where: str) -> Settings:
    """Return the settings in the tables of a file. Raises ConfigError."""
    tables = dict(tables)
    providers = tables.pop("providers", {})
    if not isinstance(providers, Mapping):
        raise ConfigError(f"{where}: providers: expected tables [providers.NAME]")
    policy = tables.pop("policy", ())
    budgets = parse_budgets(tables.pop("budget", ()), providers, where)
    prices = parse_prices(tables.pop("prices", {}), providers, where)
    packages = _take_packages(tables, where)
    settings = convert(Settings, tables, where)
    _check_ranges(settings, where)
    check_http(settings.http, where)
    check_notify(settings.notify, where)
    found = {
        name: _provider(name, table, f"{where}: providers.{name}")
        for name, table in providers.items()
    }
    rules = parse_policy(policy, settings.plan.worth, tuple(found), where)
    if settings.intake.mode != "hold" and any(rule.mark for rule in rules):
        raise ConfigError(
            f"{where}: policy: mark = true, but [intake] mode is"
            f" {settings.intake.mode}, where only the attribute makes a job burstable",
            "leave mark out, or choose mode hold",
        )
    return msgspec.structs.replace(
        settings,
        providers=found,
        policy=rules,
        budget=budgets,
        prices=prices,
        packages=packages,
    )


def _take_packages(tables: dict[str, Any], where: str) -> dict[str, PackageTable]:
    """Remove the tables of packages from those of a file, and return them.

    Raises ConfigError, also for a table that belongs to no package.
    """
    ours = {field.name for field in msgspec.structs.fields(Settings)} - {"packages"}
    found: dict[str, PackageTable] = {}
    names = tables.keys() - ours
    if not names:
        return found  # entry points are read only if there is a table of a package
    theirs = installed("burst.settings").keys()
    for name in sorted(names):
        if name not in theirs:
            raise unknown_key(where, name, ours | theirs)
        table = tables.pop(name)
        if not isinstance(table, Mapping):
            raise ConfigError(f"{where}: {name}: expected a table [{name}]")
        kind: type[PackageTable] = load_extension("burst.settings", name)
        found[name] = convert(kind, table, f"{where}: {name}")
        found[name].check(where)
    return found


def effective(
    settings: Settings,
    tables: Mapping[str, Any],
    source: str,
    options: Mapping[str, msgspec.Struct] = MappingProxyType({}),
) -> Iterator[tuple[str, Any, str]]:
    """Yield each key, its value and where that came from: the source, or `default`.

    `options` has the parsed table of each plug-in, by the provider's name; for a
    provider that is missing there, only the keys in the file are shown.
    """
    for table, section in msgspec.structs.asdict(settings).items():
        given = tables.get(table, {})
        if table in ("policy", "budget"):
            yield from _each(table, section, given or (), source)
            continue
        if table == "prices":
            for key, price in section.items():
                yield f"prices.{key}", price, source
            continue
        if table == "packages":
            for name, kept in section.items():
                yield from _leaves(name, kept, tables[name], source)
            continue
        if table != "providers":
            yield from _keys(table, section, given, source)
            continue
        for name, provider in section.items():
            yield f"providers.{name}.type", provider.type, source
            origin = source if "enabled" in given.get(name, {}) else "default"
            yield f"providers.{name}.enabled", provider.enabled, origin
            origin = source if "provision" in given.get(name, {}) else "default"
            yield f"providers.{name}.provision", provider.provision, origin
            written = given.get(name, {}).get("standing", ())
            path = f"providers.{name}.standing"
            yield from _each(path, provider.standing, written, source)
            found = options.get(name, provider.options)
            yield from _leaves(f"providers.{name}", found, provider.options, source)


def _keys(
    name: str, table: Table, written: Mapping[str, Any], source: str
) -> Iterator[tuple[str, Any, str]]:
    """Yield the keys of a table that has no tables inside it."""
    for key, value in msgspec.structs.asdict(table).items():
        if key not in table.retired:
            yield f"{name}.{key}", value, source if key in written else "default"


def _each(
    kind: str,
    tables: Iterable[msgspec.Struct],
    written: Iterable[Mapping[str, Any]],
    source: str,
) -> Iterator[tuple[str, Any, str]]:
    """Yield the keys of each table of a list, by its name or else its number.

    Of the keys below `match`, only those in the file are yielded.
    """
    for number, (one, table) in enumerate(zip(tables, written, strict=True), 1):
        values = msgspec.structs.asdict(one)
        path = f"{kind}.{values.pop('name', number)}"
        for key, value in values.items():
            if key == "match":
                given = table.get("match", {})
                yield from (
                    (f"{path}.match.{name}", each, source)
                    for name, each in given.items()
                )
            else:
                yield f"{path}.{key}", value, source if key in table else "default"


def _leaves(
    path: str, value: Any, written: Any, source: str
) -> Iterator[tuple[str, Any, str]]:
    """Yield the keys of a table that a plug-in declares, and of tables inside it."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(value)
        value = {field.encode_name: getattr(value, field.name) for field in fields}
    for key, each in value.items():
        given = key in written
        below = each.values() if isinstance(each, Mapping) else (each,)
        if below and all(isinstance(one, msgspec.Struct) for one in below):
            inside = written[key] if given else {}
            yield from _leaves(f"{path}.{key}", each, inside, source)
        else:
            yield f"{path}.{key}", each, source if given else "default"


def _provider(name: str, table: Any, where: str) -> ProviderTable:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: expected a table", f"write [providers.{name}]")
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name):
        raise ConfigError(
            f"{where}: not a name for a provider",
            "use at most 63 lower-case letters, digits and -, as it becomes a label",
        )
    own = ("type", "enabled", "provision")
    known = (*own, *ProviderTable.retired)
    common = {key: table[key] for key in known if key in table}
    if "type" not in common:
        raise ConfigError(f"{where}.type: is missing", "name a type that is installed")
    parsed = convert(ProviderTable, common, where)
    if parsed.provision < _SHORTEST_S:
        raise ConfigError(
            f"{where}.provision: {parsed.provision} is out of range",
            f"at least {format_fsd(_SHORTEST_S)}",
        )
    standing = parse_standing(table.get("standing", ()), where)
    taken = {*common, "standing"}
    rest = {key: value for key, value in table.items() if key not in taken}
    return msgspec.structs.replace(parsed, standing=standing, options=rest)


# Everything would be late at once.
_SHORTEST_S = 0.1

RANGES: Mapping[str, tuple[float, float]] = {
    "lead.port": (0, 65535),
    "daemon.cadence": (0.05, 3600),
    "daemon.forecast": (0.05, math.inf),
    "plan.worth": (0, MOST_WORTH),
    "limits.max_nodes": (0, math.inf),
    "limits.max_bursts": (0, math.inf),
    "limits.max_nodes_per_burst": (0, math.inf),
    "limits.max_nodes_per_user": (0, math.inf),
    "guests.request_nodes": (0, math.inf),
    "deadlines.join": (_SHORTEST_S, math.inf),
    "deadlines.run": (_SHORTEST_S, math.inf),
    "limits.cooldown": (0, LONGEST),
}
"""The least and the most value of each key; durations in seconds."""


def _check_ranges(settings: Settings, where: str) -> None:
    for key, (low, high) in RANGES.items():
        value = operator.attrgetter(key)(settings)
        is_time = isinstance(value, Seconds)
        least, most = map(format_fsd if is_time else str, (low, high))
        if not low <= value <= high:
            raise ConfigError(
                f"{where}: {key}: {value} is out of range",
                f"at least {least}" + (f", at most {most}" if high < math.inf else ""),
            )
    owner = settings.lead.owner
    if owner != dns_label(owner, "", LONGEST_OWNER):
        raise ConfigError(
            f"{where}: lead.owner: {owner!r} cannot be an owner tag",
            f"at most {LONGEST_OWNER} lower-case letters, digits and dashes, with no"
            " dash first or last",
        )
    lease, drain = settings.deadlines.lease, settings.deadlines.drain
    if lease <= drain and not math.isinf(lease):
        raise ConfigError(
            f"{where}: deadlines.lease: must be longer than deadlines.drain",
            "a burst is drained that long before its lease ends",
        )

# SPDX-License-Identifier: MIT
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from burst.config import Settings, parse
from burst.errors import ConfigError
from burst.provider import Provider
from burst.provider_type import PROVIDERS
from burst.runtime.provider_registry import load_providers
from burst.testing import FakeProvider


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, PROVIDERS)


FAKE = point("fake", "burst.testing:FakeProvider")


def settings(text: str) -> Settings:
    return parse(tomllib.loads(text), "burst.toml")


def load(table: str, *points: EntryPoint) -> Mapping[str, Provider]:
    """Load the provider `x` of which this is the table, by these entry points."""
    return load_providers(settings(f"[providers.x]\n{table}\n"), "owner-1", points)


def test_each_enabled_table_becomes_a_provider_in_their_order() -> None:
    found = load_providers(
        settings(
            '[providers.second]\ntype = "fake"\nmax_nodes = 7\n'
            '[providers.first]\ntype = "fake"\n'
        ),
        "owner-1",
        [FAKE],
    )
    assert list(found) == ["second", "first"]
    second = found["second"]
    assert isinstance(second, FakeProvider)
    assert (second.name, second.owner) == ("second", "owner-1")
    assert second.settings.max_nodes == 7


def test_what_is_disabled_is_not_imported() -> None:
    gone = point("gone", "no_such_module:X")
    assert load('type = "gone"\nenabled = false', gone) == {}


def test_an_unknown_type_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"x\.type: no provider 'gek'.*are fake, gke"):
        load('type = "gek"', point("gke", "g:G"), FAKE)
    with pytest.raises(ConfigError, match="installed types are none"):
        load('type = "gke"')


def test_a_type_of_two_packages_is_neither_of_them() -> None:
    with pytest.raises(
        ConfigError, match="packages burst and other each have 'fake' in"
    ):
        load('type = "fake"', FAKE, point("fake", "other:P"))
    assert load('type = "fake"', FAKE, FAKE), "it is the same object"


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("no_such_module:X", "pip install no_such_module, or set enabled = false"),
        ("no_such_module.a:X [gke]", r"pip install 'no_such_module\[gke\]'"),
    ],
)
def test_a_provider_that_lacks_something_says_what_to_install(
    value: str, advice: str
) -> None:
    with pytest.raises(ConfigError, match=f"No module named.*{advice}"):
        load('type = "p"', point("p", value))


def test_an_installed_package_is_named_as_pip_knows_it(
    tmp_path: Path, plugins: Path
) -> None:
    info = plugins / "my_burst-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: my-burst\nVersion: 1\n"
    )
    (info / "entry_points.txt").write_text(
        f"[{PROVIDERS}]\nmine = my_burst:Mine [cloud]\n"
    )
    (plugins / "my_burst.py").write_text("import no_such_cloud\n")
    with pytest.raises(ConfigError, match=r"no_such_cloud.*pip install 'my-burst\[cl"):
        load_providers(settings('[providers.x]\ntype = "mine"\n'), "o")


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a directory from which modules are imported during the test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


_BASE = "from burst.provider import Provider\nclass P(Provider):\n"
_BROKEN = "providers.x: its package .*: {}; that is"
_ODD = "(Struct):\n    def __post_init__(self): raise OSError('odd')"
_WHOLE = """\
from msgspec import Struct
from burst.provider import Provider
class S(Struct): 1
class P(Provider):
    offers = observe = provision = reap = id
    Settings = S
    def __init__(self, *_): 1
"""


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("", "provider p is not at wrong:P.*another version"),
        (
            "class P: Settings = 1",
            "wrong:P is not a subclass of burst.provider.Provider",
        ),
        ("P = 3", "wrong:P is not a subclass of"),
        (
            f"{_BASE} offers = observe = provision = id",
            "no method reap; .* see burst.pr",
        ),
        (
            f"{_BASE} offers = observe = provision = reap = id",
            "no Settings; .*msgspec.S",
        ),
        (
            "from burst.provider import Gone",
            r"provider p does not fit burst [\d.]+: cannot import.* version of wrong ",
        ),
        ("import burst.gone", r"provider p does not fit burst [\d.]+: No module named"),
        (
            "from msgspec import Gone",
            "providers.x: its package cannot be imported: cannot import name 'Gone'",
        ),
        ("raise ValueError('x')", _BROKEN.format("ValueError: x")),
        ("raise SystemExit(3)", _BROKEN.format("SystemExit: 3")),
        (
            "from asyncio import CancelledError\nraise CancelledError",
            _BROKEN.format("CancelledError: "),
        ),
        ("P = ) 3", "providers.x: its package cannot be imported: SyntaxError"),
        (f"{_WHOLE}    def has(self): 1", "providers.x: it cannot be made: TypeError"),
        (
            f"{_WHOLE}    @property\n    def resize(self): raise ValueError('x')",
            "providers.x: it cannot be made: ValueError: x",
        ),
        *(
            (
                f"{_WHOLE}    concurrency = {odd}",
                f"be made: TypeError: concurrency is {odd}",
            )
            for odd in ("0", "None")
        ),
        (
            f"{_WHOLE}    @property\n    def concurrency(self): raise ValueError('x')",
            "providers.x: it cannot be made: TypeError: concurrency is <property",
        ),
        (
            _WHOLE.replace("(Struct): 1", _ODD),
            "providers.x: its settings cannot be read: OSError: odd",
        ),
    ],
)
def test_what_is_no_provider_is_refused(source: str, what: str, plugins: Path) -> None:
    (plugins / "wrong.py").write_text(source)
    with pytest.raises(ConfigError, match=what):
        load('type = "p"', point("p", "wrong:P"))


@pytest.mark.parametrize(
    ("kind", "line", "what"),
    [
        ("local", "max_nodes = 0", r"providers\.x: max_nodes: .*>= 1"),
        ("local", "grace = 5", r"providers\.x: grace: is gone; remove it"),
        ("local", 'direction = "/x"', "direction: no such key"),
        ("fake", "max_node = 3", "x: max_node: no such key; did you mean max_nodes"),
        ("fake", 'max_nodes = "3"', "providers.x: max_nodes: .*whole number"),
    ],
)
def test_a_wrong_setting_is_named_with_its_table(
    kind: str, line: str, what: str
) -> None:
    local = point("local", "burst_local.provider:LocalProvider")
    with pytest.raises(ConfigError, match=what):
        load(f'type = "{kind}"\n{line}', FAKE, local)


def test_a_provider_is_asked_once_what_it_has(plugins: Path) -> None:
    source = f"{_WHOLE}    asked = 0\n    def has(self, method):\n"
    source += "        P.asked += 1\n        return method == 'resize'\n"
    (plugins / "wrong.py").write_text(source)
    made = load('type = "p"', point("p", "wrong:P"))["x"]
    before = vars(type(made))["asked"]
    assert [made.has("resize"), made.has("probe")] == [True, False]
    assert vars(type(made))["asked"] == before

# SPDX-License-Identifier: MIT
"""An ensemble's file: what it means, and what is refused with line and advice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest
from burst_ensemble.algorithm import MemberDecision
from burst_ensemble.config.file import EnsembleFile, load_ensemble
from burst_ensemble.config.source import read_source
from burst_ensemble.core.views import fresh_view
from burst_ensemble.runtime.algorithms import load_algorithms
from burst_ensemble.runtime.read_file import AbilitiesOf, check_supported

from burst.errors import ConfigError

TOML = '''\
name = "lammps"
checkSeconds = 5
growWindow = "1m"
algorithm = "workload-demand"

[limits]
nodes = 12
money = 5.0
time = "2h"

[custom]
save = ["save.sh", "all"]
mail = "mail -s 'done' me"

[[members]]
name = "small"
provider = "local"
max = 4
share = 2.0
offer = "cheap"
algorithm = [
    { name = "workload-demand", options = { scaleChecks = 3 } },
    { name = "stop", options = { successTarget = 5 } },
]

[[members.jobs]]
name = "two"
command = "lmp -v x '2 2'"
count = 5
nodes = 2
duration = "10m"

[[members.jobs]]
name = "listing"
batch = "listing"

[[members]]
name = "large"
provider = "kind"
mode = "isolated"
min = 2
size = 3
max = 8
count = 2
image = "x"

[[jobs]]
name = "shared"
command = """
true
[members]
name = "no table"
"""
nodes = 8
'''
YAML = """\
apiVersion: ensemble.flux-framework.org/v1alpha1
kind: Ensemble
metadata:
  name: workload-demand
spec:
  members:
  - size: 2
    max: 6
    min: 2
    algorithm:
      name: workload-demand
      options:
        terminateChecks: 2
        disableTermination: no
        order: "random"
    jobs:
      - name: lammps-2
        command: lmp -v x 2
        count: 5
        nodes: 2
        duration: 90
"""
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def made(text: str, name: str = "e.toml") -> Path:
        (tmp_path / "listing").write_text("one a\n\n# two\n  three\n")
        path = tmp_path / name
        path.write_text(text)
        return path

    return made


def load(path: Path, *providers: str) -> EnsembleFile:
    file = load_ensemble(path, providers or ("local", "kind"))
    load_algorithms(file, [])
    return file


def test_a_file_says_what_it_says(write: Write) -> None:
    spec = load(write(TOML)).spec
    assert [each.name for each in spec.members] == ["small", "large-0", "large-1"]
    small, large, _ = spec.members
    assert (small.size, small.min, small.max, small.share) == (1, 1, 4, 2.0)
    assert (float(spec.grow_window), float(spec.shrink_window)) == (60, 60)
    assert [each.name for each in small.algorithms] == ["workload-demand", "stop"]
    assert (large.size, large.min, large.max, large.mode) == (3, 2, 8, "isolated")
    assert (small.offer, large.image) == ("cheap", "x")
    assert [each.name for each in large.algorithms] == ["workload-demand"]
    assert (spec.limits.nodes, spec.limits.money) == (12, 5.0)
    assert float(spec.limits.time) == 7200
    assert spec.custom == {
        "save": ("save.sh", "all"),
        "mail": ("mail", "-s", "done", "me"),
    }
    assert float(spec.check) == 5
    two, listing = small.jobs
    assert (two.total, two.command_of(3)) == (5, "lmp -v x '2 2'")
    assert float(two.duration) == 600
    assert (listing.total, listing.command_of(1)) == (2, "three")
    assert spec.member("large-1").provider == "kind"
    with pytest.raises(KeyError):
        spec.member("large")
    assert fresh_view(spec, small).jobs[0].left == 5


def test_a_custom_resource_of_the_ensemble_operator_is_read(write: Write) -> None:
    spec = load(write(YAML, "e.yaml"), "kube").spec
    (member,) = spec.members
    assert (spec.name, member.name) == ("workload-demand", "workload-demand-0")
    assert (member.size, member.min, member.max) == (2, 2, 6)
    assert member.provider == "kube"
    assert float(member.jobs[0].duration) == 90
    assert member.algorithms[0].options["disableTermination"] is False


WRONG = [
    ("max = 4", "max = 4\nmin = 5", 18, "max: 4 is less than min, 5", "at least 5"),
    ("max = 4", "maks = 4", 18, "maks: no such key", "known keys are algorithm,"),
    ("max = 4", "max = 4\nsize = 5", 19, "size: 5 is out of range", "1 to 4"),
    ("share = 2.0", "share = 0", 19, "share: Expected float >= 0.001", ""),
    ('"small"', '"Small"', 16, "'Small' is not a name", "lower-case"),
    ('"small"', '"large-0"', 38, "there is a member large-0", "another name"),
    ('"local"', '"locl"', 17, "there is no provider locl", "local?"),
    ('"local"', '"x"', 17, "there is no provider x", "kind, local"),
    ('provider = "local"\n', "", 15, "provider: is missing", "kind, local"),
    ("scaleChecks", "scaleCheks", 22, "scaleCheks: no such key", "scaleChecks?"),
    ('"stop"', '"stopp"', 23, "there is no algorithm 'stopp'", "stop?"),
    ('"stop"', '"fair"', 23, "there is no algorithm 'fair'", "there are more-jobs"),
    ('"stop"', '"workload-demand"', 23, "is listed twice", "remove"),
    ("nodes = 2", "nodes = 5", 30, "nodes: 5 is more than max, 4", "larger max"),
    ("count = 5", "count = 5\ntasks = 1", 30, "1 tasks for 2 nodes", "leave tasks out"),
    ("count = 5", "count = 5\ntasks = 3", 30, "3 tasks for 2 nodes", "a multiple"),
    ("'2 2'", "'2 2", 28, "No closing quotation", ""),
    ("lmp -v x '2 2'", " ", 28, "' ' is not a command", ""),
    ("lmp -v x '2 2'", "a\\u0000", 28, "contains a NUL", ""),
    ('batch = "listing"', 'batch = "quote"', 35, 'quote:3: "don\'t": No', "shell"),
    ('batch = "listing"', 'batch = "a\\u0000"', 35, "cannot be read", "a line"),
    ('["save.sh", "all"]', "[]", 12, "custom.save: '' is not a command", "such as"),
    ("'done'", "'done", 13, 'custom.mail: "mail -s \'done me": No', ""),
    ('"two"', '"t w o"', 27, "not a name for jobs", "letters"),
    ('"two"', '"listing"', 34, "there are jobs listing", "rename"),
    ('"two"', '"shared"', 48, "member small has jobs shared, too", "rename"),
    ('batch = "listing"', "", 33, "either a command or a batch", "one"),
    ('batch = "listing"', 'batch = "no"', 35, "cannot be read", "a line"),
    ('batch = "listing"', 'batch = "empty"', 35, "has 0 commands", "1 to"),
    ('batch = "listing"', 'batch = "listing"\ncount = 3', 36, "is a job", "leave"),
    ('"10m"', '"10 minutes"', 31, "not a duration", ""),
    ("nodes = 12", "nodes = 4", 7, "less than the members' min together", "5"),
    ('time = "2h"', "time = 0", 9, "limits.time: all would end at once", "leave"),
    ('algorithm = "workload-demand"', 'algorithm = ""', 4, "no algorithm", "leave it"),
    ("money = 5.0", "money = inf", 8, "inf is not a finite number", "leave it out"),
    ("scaleChecks = 3", "x = nan", 22, "x: nan is not a finite number", "leave it out"),
    ("checkSeconds = 5", "checkSeconds = 0", 2, "out of range", "0.1"),
    ('"lammps"', '""', 1, "name: is missing", "lower-case"),
    ('"lammps"', '"lammps"\nnodes = 3', 2, "nodes: no such key", "known keys"),
    ("count = 5", "count = 0", 22, "jobs two have count 0", "more-jobs"),
    ('"two"\n', '"two"\ncommands = ["a"]\n', 28, "no such key", "command?"),
    ('image = "x"', "sidecar = {}", 45, "sidecar: is gone", "without a sidecar"),
    ('image = "x"', "growWindow = 3", 45, "growWindow: is gone", "top of the file"),
    ('image = "x"', "minicluster = {}", 45, "minicluster: is gone", "size, min, max"),
    ('"isolated"', '"external"', 45, "the file cannot set image of an ext", "remove"),
    ('"10m"', '"inf"', 31, "duration: out of range", "no time limit"),
    ("checkSeconds = 5", 'directory = "/"', 2, "no such key", "workdir"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[3])
def test_what_is_wrong_is_said_with_its_line_and_what_is_right(
    write: Write, case: tuple[str, str, int, str, str]
) -> None:
    old, new, line, what, advice = case
    assert old in TOML
    path = write(TOML.replace(old, new, 1))
    (path.parent / "empty").write_text("# nothing\n")
    (path.parent / "quote").write_text("# one\ntrue\ndon't\n")
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert caught.value.what.startswith(f"{path}:{line}: ")
    assert what in caught.value.what
    assert advice in caught.value.advice


HEAD = 'name = "x"\n'
ONE = '[[members]]\nprovider = "local"\n'


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("name = ", "not TOML"),
        (HEAD, "members: is missing"),
        (f"{HEAD}members = 3", "members: Expected list"),
        (f"{HEAD}members = [3]", "members.0: Expected table"),
        (f"{HEAD}custom = 3\n{ONE}", "table of commands"),
        *(
            (f"{HEAD}limits = {value}\n{ONE}", "limits: expected a table")
            for value in ("3", "0", "[]", '""')
        ),
        (f"{HEAD}{ONE}algorithm = 3", "algorithm: Expected table"),
        (f"{HEAD}{ONE}jobs = [3]", "jobs.0: Expected table"),
        (HEAD + f'{ONE}name = "m"\n' * 2, "there is a member m already"),
        (
            HEAD + "".join(f'{ONE}name = "{n}"\ncount = 150\n' for n in "ab"),
            "more than 200 members",
        ),
    ],
)
def test_what_is_no_ensemble_is_said_to_be_none(
    write: Write, text: str, what: str
) -> None:
    with pytest.raises(ConfigError, match=what):
        load(write(text))


def test_keys_that_no_file_may_have_are_not_advised(write: Write) -> None:
    for old in ("checkSeconds = 5", "count = 5"):
        with pytest.raises(ConfigError) as caught:
            load(write(TOML.replace(old, f"{old}\nzzzzz = 1", 1)))
        keys = caught.value.advice.removeprefix("known keys are ").split(", ")
        assert {"name", "jobs"} & set(keys)
        assert not {"directory", "commands"} & set(keys)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("kind: Ensemble", "kind: MiniCluster", ":2: kind: 'MiniCluster' is not an"),
        (YAML, "spec: 5", ":1: spec: expected a table"),
        ("kind: Ensemble", "kind: Ensemble\nstatus: 3", ":3: status: no such key"),
        ("terminateChecks", "terminateCheks", ":13: .*terminateCheks: no such key"),
        ("max: 6", "max: 1", ":8: .*max: 1 is less than min, 2"),
        ("nodes: 2", "nodes: 7", ":20: .*nodes: 7 is more than max"),
        ("  members:", "  members: [", "not YAML"),
        (YAML, "hello", "has no keys"),
        (YAML, "a: &a [*a]", "not YAML"),
    ],
)
def test_in_yaml_the_line_is_said_as_well(
    write: Write, old: str, new: str, what: str
) -> None:
    with pytest.raises(ConfigError, match=what):
        load(write(YAML.replace(old, new, 1), "e.yaml"), "kube")


def test_without_pyyaml_it_says_what_to_install(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ConfigError, match=r"PyYAML, .*, is not installed.*pip install"):
        load(write(YAML, "e.yaml"))


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "no.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a text"):
        load(tmp_path / "binary.toml")


def test_lines_are_found_behind_long_texts_and_quoted_keys(write: Write) -> None:
    text = "\n".join(
        [
            'a = """',
            "b = 1",
            '"""',
            "c = '''x''' # [d]",
            'e = ["[f]", # ]',
            '  "\\"", \'"\']',
            '"g h".i = 2',
            "[[j]]",
            "[[j.k]]",
            "[[j.k]]",
            "l = 1",
            '"m.n" = { o = 3 }',
            'p = """\\""" q = 1',
            '"""',
            "r = 4",
        ]
    )
    line_of = read_source(write(text)).line_of
    assert line_of(("c",)) == 4
    assert line_of(("e",)) == 5
    assert line_of(("g h", "i")) == 7
    assert line_of(("j", 0, "k", 1, "l")) == 11
    assert line_of(("j", 0, "k", 1, "m.n")) == 12
    assert line_of(("j", 0, "k", 1, "r")) == 15
    assert line_of(("b",)) is None
    # Where what is open cannot be ended, the line is that of the end.
    assert read_source(write('t = ["""\n"""]\n')).line_of(("t",)) == 2


class Own:
    """An algorithm of another package."""

    class Options(msgspec.Struct):
        value: int = 1

    def __init__(self, options: Any) -> None:
        self.options = options
        if options.value == 13:
            raise ValueError("13 brings bad luck")
        if options.value == 14:
            raise ConfigError("not 14")
        if options.value == 15:
            sys.exit(15)

    def decide(self, view: Any, memory: Any, now: float) -> MemberDecision:
        return MemberDecision()


class Odd(Own):
    """One whose `problems` returns this."""

    class Options(msgspec.Struct):
        value: int = 1
        found: Any = None

    def problems(self, view: Any) -> Any:
        return self.options.found


class Unable(Own):
    decide = None  # type: ignore[assignment]


def __getattr__(name: str) -> NoReturn:
    """As a module that fails as it is imported."""
    if name == "Ends":
        sys.exit("bye")
    if name == "Fails":
        raise ZeroDivisionError("oh")
    raise AttributeError(name)


class WithoutOptions:
    pass


PLUGINS = [
    EntryPoint(name, f"tests.plugins.ensemble.test_file:{value}", "burst.algorithms")
    for name, value in {
        "own": "Own",
        "odd": "Odd",
        "unable": "Unable",
        "ends": "Ends",
        "fails": "Fails",
        "bare": "WithoutOptions",
        "gone": "Gone",
        "stop": "Gone",
    }.items()
]


def plugged(write: Write, algorithm: str, *, lines: bool = True) -> Any:
    text = f'name = "x"\n[[members]]\nname = "m"\nprovider = "local"\n{algorithm}'
    file = load_ensemble(write(text), ["local"])
    return load_algorithms(file if lines else EnsembleFile(file.spec), PLUGINS)


def test_an_algorithm_of_another_package_is_found_by_its_name(write: Write) -> None:
    found = plugged(write, 'algorithm = ["own"]')
    assert isinstance(found["m"]["own"], Own)


@pytest.mark.parametrize(
    ("algorithm", "what"),
    [
        ('"gone"', ":5: .*gone cannot be made: AttributeError: "),
        ('"ends"', ":5: .*ends cannot be made: SystemExit: bye"),
        ('"fails"', ":5: .*fails cannot be made: ZeroDivisionError: oh"),
        ('"odd"', ":5: .*odd cannot be made: TypeError: "),
        ('{ name = "odd", options.found = ["x"] }', ":5: .*odd cannot be made: Attr"),
        ('"bare"', ":5: .*has no Options"),
        ('"stop"', ":5: .*stop is built in, and package tests has one of that name; "),
        ('"unable"', ":5: .*has no method decide"),
        ('{ name = "own", options.value = 13 }', ":5: .*cannot be made: .*bad luck"),
        ('{ name = "own", options.value = 14 }', "not 14"),
        ('{ name = "own", options.value = 15 }', ":5: .*cannot be made: SystemExit"),
        ('{ name = "own", options.valu = 1 }', ":5: .*no such key; did you mean value"),
        ('"triggers"', ":5: .*rules"),
    ],
)
def test_a_package_that_does_not_keep_to_the_interface_is_said(
    write: Write, algorithm: str, what: str
) -> None:
    with pytest.raises(ConfigError, match=what):
        plugged(write, f"algorithm = {algorithm}")


def test_without_the_file_the_member_is_said(write: Write) -> None:
    what = "member m: algorithm.0.options.x: no such"
    with pytest.raises(ConfigError, match=what):
        plugged(write, 'algorithm = { name = "own", options.x = 1 }', lines=False)


ISOLATED = """\
name = "far"
[[members]]
name = "m"
provider = "kind"
mode = "isolated"
max = 4
"""


def modes(*known: str) -> AbilitiesOf:
    """What all providers have."""
    return lambda _: known


def test_members_are_of_modes_that_their_provider_makes(write: Write) -> None:
    """Nothing is refused as long as it is not known what the provider makes."""
    file = load(write(TOML))
    check_supported(file, modes())
    check_supported(file, modes("joined", "isolated", "image"))
    with pytest.raises(ConfigError, match="member large-0: image: bursts of"):
        check_supported(EnsembleFile(file.spec), modes("isolated"))
    file = load(write(ISOLATED))
    check_supported(file, modes("isolated"))
    (member,) = file.spec.members
    assert (member.is_isolated, member.min, member.max) == (True, 1, 4)


JOBS_THERE = """
[[{table}]]
name = "a"
command = "true"
[[{table}]]
name = "b"
command = "true"
workdir = "/data"
"""


OWN = """[[members.jobs]]
name = "c"
command = "true"
"""


@pytest.mark.parametrize(
    ("table", "where"),
    [
        ("members.jobs", ":17: members.0.jobs.2.workdir: "),
        ("jobs", ":17: jobs.1.workdir: "),
    ],
)
def test_a_directory_of_isolated_jobs_is_refused_with_its_line(
    write: Write, table: str, where: str
) -> None:
    text = ISOLATED + OWN + JOBS_THERE.format(table=table)
    with pytest.raises(ConfigError) as caught:
        check_supported(load(write(text)), modes("isolated"))
    assert f"{where}jobs of an isolated member run in /tmp" in caught.value.what
    joined = load(write(text.replace('"isolated"', '"joined"')))
    check_supported(joined, modes("joined"))

# SPDX-License-Identifier: MIT
"""`make e2e` installs what it can, and leaves out nothing without saying so."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.__main__ import STAGES, Stage, main
from tests.e2e.tools import FILES, PACKAGES, ROOT, Machine
from tests.kubelab.build import Unavailable
from tests.stages import PURE, of_stage, workers
from tests.support.waiting import HANG_S


class Fake:
    """A machine on which apt-get installs what Debian has."""

    def __init__(
        self,
        *programs: str,
        uid: int = 0,
        go: str = "go1.24.1",
        inotify: Path = Path("/nowhere"),
    ) -> None:
        self.programs = set(programs)
        self.ran: list[list[str]] = []
        self._go = go
        self.machine = Machine(self._which, self._run, lambda: uid, inotify)

    def _which(self, name: str) -> str | None:
        return f"/bin/{name}" if name in self.programs else None

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.ran.append(list(command))
        if command[0] == "go":
            return subprocess.CompletedProcess(command, 0, f"{self._go}\n", "")
        installed = {name for name, of in PACKAGES.items() if set(of) & set(command)}
        self.programs |= installed
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def fails(_command: list[str]) -> int:
    return 3


def passes(_command: list[str]) -> int:
    return 0


def cannot_be_made(_command: list[str]) -> int:
    raise Unavailable("kwok is missing")


def breaks(_command: list[str]) -> int:
    raise subprocess.CalledProcessError(1, ["go", "build"])


def hangs(_command: list[str]) -> int:
    raise AssertionError("waited 600 s for etcd:\nits log\n")


def is_killed(command: list[str]) -> int:
    (report,) = (word for word in command if word.startswith("--junitxml="))
    Path(report.partition("=")[2]).write_text("<testsui")
    return 137


def test_root_on_debian_gets_what_debian_has() -> None:
    fake = Fake("apt-get", "go")
    needed = [name for stage in STAGES for name in (*stage.needs, *stage.wants)]
    fake.machine.install(needed)
    update, install = (command for command in fake.ran if command[0] == "apt-get")
    assert update[-1] == "update"
    assert {"docker.io", "iptables", "debootstrap", "gcc"} <= set(install)
    lacks = set(fake.machine.lacks(needed))
    assert lacks == {"flux is not on PATH", f"fluxion is not in /{FILES['fluxion']}"}
    fake.ran.clear()
    fake.machine.install(["dockerd"])
    assert not fake.ran, "nothing is missing"


@pytest.mark.parametrize(
    "fake", [Fake("apt-get", uid=1000), Fake()], ids=["user", "not-debian"]
)
def test_others_are_told_what_is_missing(fake: Fake) -> None:
    fake.machine.install(["dockerd"])
    assert not fake.ran
    (said,) = fake.machine.lacks(["dockerd"])
    assert said == "dockerd is not on PATH (apt-get install docker.io)"


def test_a_go_that_is_too_old_and_a_user_that_is_not_root_are_told() -> None:
    machine = Fake("go", go="go1.19.8").machine
    assert machine.lacks(["go"]) == ["go is go1.19.8, and 1.24 is needed"]
    assert not Fake("go", go="go2.0").machine.lacks(["go"])
    assert Fake(uid=1000).machine.lacks([ROOT]) == ["root is needed"]
    assert not Fake().machine.lacks([ROOT])


def test_stages_that_fail_fail_all_and_stop_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = {
        fails: "FAILED with status 3",
        breaks: "FAILED: what it runs in could not be made: .*CalledProcessError",
        hangs: "FAILED: what it runs in .*: AssertionError: waited 600 s for etcd:$",
        is_killed: "FAILED with status 137",
        lambda _: 5: "FAILED: no test has this mark",
        passes: "passed$",
    }
    names = ("kind", "nodes", "flux", "slurm", "site", "month")
    stages = [Stage(*one) for one in zip(names, told, strict=True)]
    assert main([], Fake().machine, stages) == 1
    said = capsys.readouterr().out.splitlines()[1:]
    for name, how, line in zip(names, told.values(), said, strict=True):
        assert re.match(rf"{name} +\d+ s  {how}", line)


def test_a_stage_or_a_file_that_is_not_there_is_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake = Fake("apt-get")
    stages = [Stage("kind", breaks, ("dockerd",)), Stage("month", breaks)]
    for words in (["kinnd"], ["kind", "moth", "-q"], ["month", "tests/test_nil.py::x"]):
        assert main(words, fake.machine, stages) != 0
        wrong = next(word for word in words if word not in ("kind", "month"))
        told = capsys.readouterr().err
        assert told.endswith(f"there is no stage {wrong}; there are kind, month\n")
    assert not fake.ran


def test_two_stages_run_at_a_time_and_are_told_in_their_order(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    met = threading.Barrier(2, timeout=HANG_S)
    places = threading.Semaphore(2)

    def meets(_command: list[str]) -> int:
        assert places.acquire(blocking=False)
        met.wait()
        places.release()
        return 0

    limit = tmp_path / "max_user_instances"
    limit.write_text("128\n")
    names = ("kind", "month", "flux", "nodes", "site", "slurm")
    stages = [Stage(name, meets, hosts=True) for name in names]
    assert main([], Fake(inotify=limit).machine, stages) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said[1:]] == [s.mark for s in stages]
    assert int(limit.read_text()) > 128


def test_where_few_hosts_may_run_one_of_their_stages_runs_at_a_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    met = threading.Barrier(2)

    def meets_none(_command: list[str]) -> int:
        with pytest.raises(threading.BrokenBarrierError):
            met.wait(0.2)
        return 0

    stages = [Stage(name, meets_none, hosts=True) for name in ("kind", "nodes")]
    assert main([], Fake().machine, stages) == 0
    assert "one stage with hosts at a time" in capsys.readouterr().err


def test_of_two_stages_each_prints_whole_lines_and_keeps_its_status(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def prints(command: list[str]) -> int:
        shell = ["sh", "-c", "printf 'half a '; echo line >&2; exit 3"]
        before = command[: command.index(sys.executable)]
        return subprocess.run([*before, *shell], check=False).returncode

    stages = [Stage(name, prints) for name in ("kind", "month")]
    assert main([], Fake().machine, stages) == 1
    said = capfd.readouterr().out
    assert said.count("half a line\n") == 2
    assert said.count("FAILED with status 3") == 2


LMP, FLUX = "lmp is not on PATH", "flux is not on PATH"
WITHOUT = [
    (Stage("kind", passes, ("dockerd",)), "SKIPPED, 2 tests: dockerd is not on PATH"),
    (Stage("kind", cannot_be_made, ()), "SKIPPED, 2 tests: kwok is missing"),
    (Stage("kind", passes, (), ("lmp",)), f"passed, but some were SKIPPED: {LMP}"),
    (Stage("kind", passes, (), ("flux",)), f"passed, but some were SKIPPED: {FLUX}"),
    (Stage("kind", passes, ("flux",)), f"SKIPPED, 2 tests: {FLUX}"),
]


@pytest.mark.parametrize(("stage", "told"), WITHOUT)
def test_what_is_left_out_is_told_and_fails_in_ci_if_it_could_be_had(
    stage: Stage,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tests = tmp_path / "test_two.py"
    mark = "import pytest\npytestmark = pytest.mark.kind\n"
    tests.write_text(f"{mark}def test_one(): ...\ndef test_two(): ...\n")
    # No package registry has Flux: CI on a new machine could not install it.
    for ci, status in (("", 0), ("true", int(FLUX not in told))):
        monkeypatch.setenv("CI", ci)
        words = ["kind", str(tests)]
        assert main(words, Fake(uid=1000).machine, [stage]) == status
        assert told in capsys.readouterr().out


def test_a_stage_all_of_whose_tests_skip_themselves_is_not_told_as_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test_one.py"
    test.write_text("import pytest\npytestmark = pytest.mark.skip('no unit')\n")
    stages = [Stage("nodes", subprocess.call, workers=1)]
    for one in ("def test_one(): ...\n", "def test_two(): ...\n"):
        test.write_text(test.read_text() + one)
    words = [str(test), "-m", "not nodes", "--rootdir", str(tmp_path)]
    assert main(words, Fake().machine, stages) == 0
    assert "SKIPPED, all 2 tests, as each says above" in capsys.readouterr().out
    test.write_text(test.read_text() + "def test_three(): ...\npytestmark = []\n")
    assert main(words, Fake().machine, stages) == 0
    assert re.search(r"nodes .* passed$", capsys.readouterr().out, re.MULTILINE)
    test.write_text(test.read_text() + "@pytest.mark.skip('want of a unit')\n")
    test.write_text(test.read_text() + "def test_four(): ...\n")
    assert main(words, Fake().machine, stages) == 0
    some = "passed, but some were SKIPPED: 1 for want of a unit"
    assert some in capsys.readouterr().out


def test_marks_choose_stages_and_the_rest_is_pytests(
    capsys: pytest.CaptureFixture[str],
) -> None:
    commands = []

    def run(command: list[str]) -> int:
        commands.append(command)
        return 5

    stages = [Stage("kind", run), Stage("nodes", run), Stage("month", fails)]
    assert main(["kind", "nodes", "-k", "month"], Fake().machine, stages) == 5
    assert [command[-2:] for command in commands] == [["-k", "month"]] * 2
    pytests = [command[command.index("pytest") :] for command in commands]
    assert {command[command.index("-m") + 1] for command in pytests} == {
        "kind",
        "nodes and not kind",
    }
    assert "no test of this mark was chosen" in capsys.readouterr().out


def test_each_test_of_a_mark_is_in_one_part() -> None:
    """`make test` and the stages share the tests out: each has what the others lack."""
    names = [stage.mark for stage in STAGES]
    for marks in itertools.product((False, True), repeat=len(names)):
        given = dict(zip(names, marks, strict=True))
        chosen = [name for name in names if eval(of_stage(name), {}, given)]
        assert len(chosen) + eval(PURE, {}, given) == 1


def test_tests_of_a_group_stay_in_one_worker(tmp_path: Path) -> None:
    """Where pytest and pytest-xdist do not fit, groups are passed over in silence."""
    (tmp_path / "test_one.py").write_text(
        "import os, pytest\n"
        "@pytest.mark.xdist_group('all')\n"
        "@pytest.mark.parametrize('n', range(4))\n"
        "def test_it(n):\n"
        "    open(os.environ['PYTEST_XDIST_WORKER'], 'w').close()\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *workers(2)], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert len(list(tmp_path.glob("gw*"))) == 1

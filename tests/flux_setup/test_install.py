# SPDX-License-Identifier: MIT
"""Files are put in place, and exactly those taken out again."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from burst.config import IntakeSettings
from burst.errors import ConfigError
from burst.flux_setup.install import (
    LIST,
    Change,
    apply_files,
    files_of_lead,
    plan_files,
)
from burst.flux_setup.setup_files import (
    LEAD_PIECE,
    IntakeChoice,
    lead_tables,
    make_files,
    read_shipped,
    single_directory,
    user_directories,
)
from tests.support.full_disk import room_for


def choice(mode="hold", **changes):
    local = changes.pop("local_queue", "")
    policy = changes.pop("policy", "fifo")
    intake = IntakeSettings(mode=mode, **changes)
    return IntakeChoice(intake=intake, policy=policy, local_queue=local)


def changes(steps):
    return [step.change for step in steps]


def below(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*"))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("keep")
    return tmp_path


def test_files_that_lead_init_added_are_known_from_those_of_setup(
    tmp_path: Path,
) -> None:
    ours = {tmp_path / "frob.py": "f", tmp_path / "modprobe/rc1.d/old.py": "o"}
    names = ("burst.service", "rc1.d/burst-daemon", "security/imp.toml")
    added = {tmp_path / name: name for name in names}
    apply_files(tmp_path, ours | added)
    assert files_of_lead(tmp_path, {tmp_path / "frob.py"}) == added


def test_a_full_disk_is_told_with_what_to_do(tmp_path: Path) -> None:
    own = tmp_path / "flux"
    with pytest.raises(ConfigError) as caught, room_for(4096):
        apply_files(own, {own / "a": "x" * 8192})
    assert caught.value.what == f"{own / 'a'}: cannot be changed: File too large"
    assert caught.value.advice == "make room there, then run it again"
    assert changes(apply_files(own, {own / "a": "x" * 8192})) == [Change.WRITE]


def interrupt(own: Path, text: str, files: dict[Path, str]) -> None:
    """Write the first of the files, which sorts before `zz`, and fail at `zz`."""
    with pytest.raises(ConfigError, match="zz: cannot be changed"), room_for(4096):
        apply_files(own, {**files, own / "zz": text * 8192})


def test_what_an_interrupted_setup_wrote_is_its_own(site: Path) -> None:
    before = below(site)
    own, first = site / "flux" / "own", site / "flux" / "a" / "first"
    interrupt(own, "1", {first: "1"})
    assert first.read_text() == "1"
    # The next release has other files, and may be interrupted too.
    assert changes(plan_files(own, {first: "2"})) == [Change.UPDATE]
    interrupt(own, "2", {first: "2"})
    assert first.read_text() == "2"
    apply_files(own, {first: "2"})
    assert changes(plan_files(own, {first: "3"})) == [Change.UPDATE]
    assert changes(apply_files(own, {})) == [Change.REMOVE]
    assert below(site) == before
    interrupt(own, "1", {first: "1"})
    apply_files(own, {})
    assert below(site) == before


def test_an_interrupted_setup_takes_no_file_of_others_for_its_own(site: Path) -> None:
    own, first = site / "flux" / "own", site / "flux" / "first"
    interrupt(own, "1", {first: "1", site / "there" / "mine": "keep"})
    (own / "zz").write_text("theirs")
    first.write_text("theirs")
    with pytest.raises(ConfigError, match="is not what `burst setup` wrote"):
        plan_files(own, {own / "zz": "2"})
    assert changes(apply_files(own, {})) == [Change.KEEP, Change.KEEP]
    assert (own / "zz").read_text() == first.read_text() == "theirs"
    assert (site / "there" / "mine").read_text() == "keep"


def test_a_file_that_an_interrupted_update_did_not_reach_is_its_own(
    tmp_path: Path,
) -> None:
    own = tmp_path / "flux"
    apply_files(own, {own / "a": "1", own / "zz": "1", own / "zzz": "1"})
    interrupt(own, "2", {own / "a": "2", own / "zzz": "2"})
    assert [(own / name).read_text() for name in ("a", "zz", "zzz")] == ["2", "1", "1"]
    assert set(changes(plan_files(own, {}))) == {Change.REMOVE}
    apply_files(own, {})
    assert not own.exists()


@pytest.mark.parametrize("system", [True, False])
def test_what_flux_reads_is_there_only_while_what_it_names_is(
    tmp_path: Path, system: bool
) -> None:
    """Else, if it ends midway, Flux looks for a plugin that is not there."""
    places = single_directory(tmp_path)
    if system:
        places = msgspec.structs.replace(places, own=tmp_path / "burst")
    made = make_files(places, choice("scheduler"))
    asked = f"apply_files(Path({str(places.own)!r}), "
    written = noted(
        "os.rename",
        tmp_path,
        f"from pathlib import PosixPath\nsys.addaudithook(note)\n{asked}{made})",
    )
    removed = noted("os.remove", tmp_path, f"sys.addaudithook(note)\n{asked}{{}})")
    for names in (written, reversed(removed)):
        kinds = [kind for name in names if (kind := _kind(name))]
        assert kinds == sorted(kinds)
        assert set(kinds) == {"py", "toml"}


def _kind(name: str) -> str:
    """Return the suffix of a file, also under the name that it has while written."""
    return next((kind for kind in ("py", "toml") if f".{kind}" in name), "")


@pytest.mark.parametrize("mode", ["hold", "queue", "scheduler"])
def test_what_was_put_in_is_taken_out_and_nothing_else(site: Path, mode: str) -> None:
    before = below(site)
    places = single_directory(site / "there" / "flux")
    made = make_files(places, choice(mode))
    assert set(changes(plan_files(places.own, made))) == {Change.WRITE}
    assert below(site) == before, "a plan changes nothing"
    apply_files(places.own, made)
    assert {path: path.read_text() for path in made} == made
    assert set(changes(apply_files(places.own, made))) == {Change.SAME}
    assert set(changes(plan_files(places.own, {}))) == {Change.REMOVE}
    assert set(changes(apply_files(places.own, {}))) == {Change.REMOVE}
    assert below(site) == before
    assert apply_files(places.own, {}) == []


@pytest.mark.parametrize("for_all", [True, False])
def test_files_for_all_can_be_read_by_all_whatever_the_umask(
    tmp_path: Path, for_all: bool
) -> None:
    places = single_directory(tmp_path / "a" / "flux")
    before = os.umask(0o077)
    try:
        apply_files(places.own, make_files(places, choice()), for_all=for_all)
    finally:
        os.umask(before)
    modes = {
        (path.is_dir(), stat.S_IMODE(path.stat().st_mode))
        for path in below(tmp_path / "a")
    }
    wanted = (0o755, 0o644) if for_all else (0o700, 0o600)
    assert modes == {(True, wanted[0]), (False, wanted[1])}


_NOTE = """
import sys
from pathlib import Path

from burst.flux_setup.install import apply_files

def note(event, args):
    if event == sys.argv[1] and not isinstance(args[0], int):
        print(args[0])

place = Path(sys.argv[2])
"""


def noted(event: str, place: Path, code: str) -> list[str]:
    """Run code that works in `place`; return the paths that audit events name."""
    done = subprocess.run(
        [sys.executable, "-c", f"{_NOTE}{code}", event, str(place)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


# What `burst setup --system` and `burst lead adopt` write as root.
_WRITE = """
from tests.lead_setup.adopted_site import Site

site = Site(place, entries=True)
sys.addaudithook(note)
apply_files(place / "a/flux", {place / "a/b/first": "1"}, for_all=True)
site.settings = place / "etc/burst.toml"
site.adopt()
"""


def test_no_mode_is_set_by_a_path_which_others_may_have_made_a_link(
    tmp_path: Path,
) -> None:
    assert noted("os.chmod", tmp_path, _WRITE) == []
    for name in ("a/b/first", "a/flux/burst-setup.json", "etc/burst.toml"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o644


def test_another_mode_takes_out_what_it_does_not_need(site: Path) -> None:
    places = single_directory(site / "flux")
    apply_files(places.own, make_files(places, choice("scheduler")))
    steps = apply_files(places.own, make_files(places, choice("hold")))
    assert not (site / "flux" / "sched-burst.py").exists()
    gone = {step.path.name for step in steps if step.change is Change.REMOVE}
    assert gone == {
        "sched-burst.py",
        "sched-burst-jobs.py",
        "sched-burst-leases.py",
        "burst.toml",
        "burst.py",
    }
    assert {step.path.name for step in steps if step.change is Change.UPDATE} == {
        LEAD_PIECE
    }


def test_a_file_of_somebody_else_is_refused_and_nothing_is_written(site: Path) -> None:
    places = single_directory(site / "flux")
    places.plugins.mkdir(parents=True)
    (places.plugins / "burst.py").write_text("theirs")
    before = below(site)
    with pytest.raises(ConfigError, match="is not what `burst setup` wrote"):
        apply_files(places.own, make_files(places, choice()))
    assert below(site) == before


def test_a_file_that_was_changed_since_stays(site: Path) -> None:
    places = single_directory(site / "flux")
    apply_files(places.own, make_files(places, choice()))
    edited = places.config / LEAD_PIECE
    edited.write_text("# mine now\n")
    with pytest.raises(ConfigError, match="exists and is not what"):
        plan_files(places.own, make_files(places, choice()))
    steps = apply_files(places.own, {})
    assert [s.path for s in steps if s.change is Change.KEEP] == [edited]
    assert [path for path in below(site / "flux") if path.is_file()] == [edited]


def test_a_file_that_is_gone_already_is_not_missed(site: Path) -> None:
    places = single_directory(site / "flux")
    apply_files(places.own, make_files(places, choice()))
    (places.plugins / "burst.py").unlink()
    assert Change.KEEP not in changes(apply_files(places.own, {}))
    assert not places.own.exists()


def test_what_was_there_just_so_is_not_ours_to_remove(site: Path) -> None:
    places = single_directory(site / "flux")
    places.plugins.mkdir(parents=True)
    (places.plugins / "burst.py").write_text(read_shipped("cli-burst.py"))
    apply_files(places.own, make_files(places, choice()))
    apply_files(places.own, {})
    assert [p for p in below(site / "flux") if p.is_file()] == [
        places.plugins / "burst.py"
    ]


def test_a_list_that_cannot_be_read_is_told(site: Path) -> None:
    places = single_directory(site / "flux")
    apply_files(places.own, make_files(places, choice()))
    (places.own / LIST).write_text("{")
    with pytest.raises(ConfigError, match="the list of installed files cannot"):
        apply_files(places.own, {})


def test_a_place_that_cannot_be_written_is_told(site: Path) -> None:
    places = single_directory(site / "there" / "mine")
    with pytest.raises(ConfigError, match=r"cannot be (read|written)"):
        apply_files(places.own, make_files(places, choice()))


def test_a_users_places_follow_the_base_directories() -> None:
    plain = user_directories({"HOME": "/h"})
    assert plain.own == Path("/h/.local/share/burst/flux")
    assert plain.formats == Path("/h/.config/flux")
    assert set(plain.environment) == {
        "FLUX_CLI_PLUGINPATH",
        "FLUX_MODPROBE_PATH_APPEND",
    }
    moved = user_directories(
        {"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c"}
    )
    assert moved.own == Path("/d/burst/flux")
    assert moved.formats == Path("/c/flux")


def test_what_the_lead_has_to_say_follows_the_mode() -> None:
    places = single_directory(Path("/x"))
    hold = lead_tables(places, choice("hold", any_job=True))
    assert hold == {
        "ingest": {
            "frobnicator": {
                "plugins": ["defaults", "constraints", "/x/frob-burst.py"],
                "burst": {
                    "any_job": True,
                    "share_users": False,
                    "mode": "hold",
                    "property": "burst",
                },
            }
        }
    }
    queue = lead_tables(places, choice("queue", queue="go", local_queue="batch"))
    assert queue["queues"] == {
        "go": {"requires": ["burst"]},
        "go-ready": {"requires": ["burst"]},
        "batch": {"requires": ["^burst"]},
    }
    assert queue["policy"]["jobspec"]["defaults"]["system"]["queue"] == "batch"
    assert queue["ingest"]["frobnicator"]["burst"]["ready"] == "go-ready"
    assert queue["ingest"]["frobnicator"]["burst"]["queue"] == "go"
    assert "policy" not in lead_tables(places, choice("queue"))
    scheduler = lead_tables(places, choice("scheduler"))
    assert scheduler["burst"] == {"scheduler": True}


def test_our_queues_have_the_limits_of_the_queue_whose_jobs_they_take() -> None:
    limits = {"duration": "8h", "job-size": {"max": {"nnodes": 4}}}
    intake = IntakeSettings(mode="queue")
    picked = IntakeChoice(intake=intake, limits=limits, plugins=("/site/frob.py",))
    tables = lead_tables(single_directory(Path("/x")), picked)
    ours = {"requires": ["burst"], "policy": {"limits": limits}}
    assert tables["queues"] == {"burst": ours, "burst-ready": ours}
    listed = tables["ingest"]["frobnicator"]["plugins"]
    assert listed == ["/site/frob.py", "constraints", "/x/frob-burst.py"]


def test_the_module_gets_the_policy() -> None:
    places = single_directory(Path("/x"))
    picked = choice("scheduler", policy="backfill")
    made = make_files(places, picked)
    text = made[places.modprobe / "modprobe.d" / "burst.toml"]
    (module,) = tomllib.loads(text)["modules"]
    assert module["module"] == "/x/sched-burst.py"
    assert module["args"] == ["policy=backfill", "lent=burst"]

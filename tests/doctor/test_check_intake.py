# SPDX-License-Identifier: MIT
"""Facts to findings: what Flux has loaded for the way in which jobs come."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from burst.config import IntakeSettings, Mode, Settings
from burst.doctor.check_intake import check_intake
from burst.doctor.collect_installed import frobnicators_here, read_installed
from burst.doctor.facts import InstalledFacts, ReadFailure
from burst.flux.identity import BootInfo
from burst.flux_setup.running_instance import RunningInstance
from burst.flux_setup.setup_files import read_shipped
from burst.model.scheduler import Scheduler
from tests.doctor.reading import NOTE, OK, WRONG, levels, said

FROB = {"plugins": ["defaults", "constraints", "/x/frob-burst.py"]}
QUEUES = {"burst": {"requires": ["burst"]}, "burst-ready": {"requires": ["burst"]}}
INSTALLED = InstalledFacts(plugin="/x/burst.py", jobs_format="/x/flux-jobs.burst.toml")


def judge(
    mode: Mode = "hold",
    *,
    installed: InstalledFacts = INSTALLED,
    scheduler: str = "sched-simple",
    queues: Any = None,
    frob: Any = FROB,
    **intake: Any,
) -> Any:
    config = {"queues": queues or {}, "ingest": {"frobnicator": frob}}
    instance = RunningInstance(known=Scheduler(name=scheduler), config=config)
    settings = IntakeSettings(mode=mode, **intake)
    return check_intake(instance, installed, Settings(intake=settings))


@pytest.mark.parametrize(
    ("mode", "facts"),
    [
        ("hold", {}),
        ("queue", {"queues": QUEUES}),
        ("scheduler", {"scheduler": "sched-burst"}),
        ("hold", {"any_job": True, "frob": {**FROB, "burst": {"any_job": True}}}),
    ],
)
def test_what_goes_with_the_mode_is_well(mode: Mode, facts: Any) -> None:
    assert set(levels(judge(mode, **facts))) == {OK}


NO_PROPERTY = {**QUEUES, "burst": {}}


@pytest.mark.parametrize(
    ("mode", "facts", "says"),
    [
        ("scheduler", {}, "the loaded scheduler is sched-simple"),
        ("scheduler", {"scheduler": ""}, "the loaded scheduler is no module"),
        ("queue", {"queues": {"burst": QUEUES["burst"]}}, "has no queue burst-ready"),
        ("queue", {"queues": NO_PROPERTY}, "queue burst does not require the property"),
        ("hold", {"any_job": True}, "[intake] any_job says True"),
    ],
)
def test_what_does_not_is_wrong(mode: Mode, facts: Any, says: str) -> None:
    found = judge(mode, **facts)
    assert levels(found).count(WRONG) == 1
    assert says in said(found)


def test_what_only_makes_it_pleasant_is_noted() -> None:
    instance = RunningInstance(known=Scheduler(name="sched-simple"), config={})
    found = check_intake(instance, InstalledFacts(), Settings())
    assert levels(found) == [OK, NOTE, NOTE, NOTE]
    assert "jobs that do not burst may run on lent nodes" in said(found)
    assert "flux submit --burst: plugin is not where Flux looks" in said(found)


def test_what_a_restart_brings_is_not_told_to_be_lacking() -> None:
    instance = RunningInstance(known=Scheduler(name="sched-simple"), config={})
    needs = Settings(intake=IntakeSettings(mode="scheduler"))
    assert levels(check_intake(instance, INSTALLED, needs)) == [WRONG, NOTE, OK, OK]
    found = check_intake(instance, INSTALLED, needs, awaits_restart=True)
    assert levels(found) == [OK, OK]
    gone = msgspec.structs.replace(INSTALLED, lacking=("/etc/flux/gone.py",))
    found = check_intake(instance, gone, needs, awaits_restart=True)
    assert "Flux refuses each job" in said(found)


def test_what_cannot_be_asked_is_told() -> None:
    found = check_intake(ReadFailure("no answer"), INSTALLED, Settings())
    assert said(found) == "no answer -> see the finding about the lead"


def test_files_are_found_where_flux_looks(tmp_path: Path) -> None:
    for name in ("plugins/burst.py", "xdg/flux/flux-jobs.burst.toml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(read_shipped("cli-burst.py"))
    environment = {
        "HOME": str(tmp_path),
        "FLUX_CLI_PLUGINPATH": f":{tmp_path}/none:{tmp_path}/plugins",
        "XDG_CONFIG_DIRS": f"{tmp_path}/xdg",
    }
    assert read_installed(environment) == InstalledFacts(
        plugin=f"{tmp_path}/plugins/burst.py",
        jobs_format=f"{tmp_path}/xdg/flux/flux-jobs.burst.toml",
    )
    assert read_installed({"HOME": str(tmp_path)}) == InstalledFacts()


def test_a_frobnicator_that_is_no_file_any_more_is_wrong(tmp_path: Path) -> None:
    listed = ["defaults", f"{tmp_path}/frob-burst.py", "constraints"]
    facts = read_installed({}, (), listed)
    (found,) = [each for each in judge(installed=facts) if each.level is WRONG]
    assert f"names {tmp_path}/frob-burst.py, which is no file" in found.what
    assert "Flux refuses each job" in found.what
    assert "keeps lent nodes" not in str(judge(installed=facts))
    # Flux runs none of them then.
    disabled = judge(frob={**FROB, "disable": True}, installed=facts)
    assert "is no file" not in said(disabled)
    # A directory is none, either.
    assert read_installed({}, (), [str(tmp_path)]).lacking == (str(tmp_path),)


@pytest.mark.parametrize(
    ("hosts", "pod", "found"),
    [
        (("head", "n1"), False, FROB["plugins"]),
        (("head.site.org", "n1"), False, FROB["plugins"]),
        (("head", "n1"), True, []),
        # As through `flux proxy`, whose URI is local.
        (("n1", "head"), False, []),
        ((), False, []),
    ],
)
def test_frobnicators_are_looked_for_on_the_host_of_rank_0_alone(
    hosts: tuple[str, ...], pod: bool, found: list[str]
) -> None:
    boot = BootInfo(rank=0, method="config", nodelist=hosts, owner=0, userid=0)
    instance = RunningInstance(config={"ingest": {"frobnicator": FROB}})
    environment = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"} if pod else {}
    assert frobnicators_here(boot, instance, "head", environment) == found
    unread = ReadFailure("no answer")
    assert frobnicators_here(unread, instance, "head", environment) == []
    assert frobnicators_here(boot, unread, "head", environment) == []


def test_files_of_another_version_are_noted(tmp_path: Path) -> None:
    frobnicator, command = tmp_path / "frob-burst.py", tmp_path / "burst.py"
    other = tmp_path / "other.py"
    environment = {"HOME": str(tmp_path), "FLUX_CLI_PLUGINPATH": str(tmp_path)}

    def noted() -> str:
        facts = read_installed(environment, (), [str(other), str(frobnicator)])
        (*_, last) = [e for e in judge(installed=facts) if "format" not in e.what]
        return last.what if last.level is NOTE else ""

    other.write_text("of the site")
    frobnicator.write_text(read_shipped("frob-burst.py"))
    command.write_text(read_shipped("cli-burst.py"))
    assert not noted()
    frobnicator.write_text("older")
    assert noted() == f"{frobnicator} is of another version of burst"
    command.write_text("older")
    assert noted() == f"{command}, {frobnicator} are of another version of burst"


@pytest.mark.parametrize(("named", "then"), [("", ""), ("/mine", ":/mine")])
def test_a_shell_without_the_exports_of_a_lead_is_told_what_to_type(
    named: str, then: str, tmp_path: Path
) -> None:
    lead = tmp_path / "lead/flux"
    for name in ("cli/plugins/burst.py", "xdg/flux/flux-jobs.burst.toml"):
        path = lead / name
        path.parent.mkdir(parents=True)
        path.write_text(read_shipped("cli-burst.py"))
    shell = {"HOME": str(tmp_path / "home"), "FLUX_CLI_PLUGINPATH": named}
    installed = read_installed(shell, [tmp_path / "none", lead])
    assert installed.exports == {
        "FLUX_CLI_PLUGINPATH": f"{lead}/cli/plugins{then}",
        "XDG_CONFIG_DIRS": f"{lead}/xdg:/etc/xdg",
    }
    instance = RunningInstance(config={"ingest": {"frobnicator": FROB}})
    one = check_intake(instance, installed, Settings())[-1]
    assert levels([one]) == [NOTE]
    assert (
        "flux submit --burst and flux jobs -o burst in this shell: the files"
        in one.what
    )
    assert f"export FLUX_CLI_PLUGINPATH={lead}/cli/plugins{then}; export" in one.advice
    # What is typed is all that was missing.
    after = read_installed({**shell, **installed.exports}, [lead])
    assert after.exports == {}
    assert after.plugin == f"{lead}/cli/plugins/burst.py"
    assert levels(check_intake(instance, after, Settings())) == [OK, OK, OK, OK]


def test_a_list_of_the_site_that_leaves_ours_out_is_found() -> None:
    frob = {"plugins": ["defaults", "/site/a.py"], "burst": {"mode": "hold"}}
    (wrong,) = [each for each in judge(frob=frob) if each.level is WRONG]
    assert "is ['defaults', '/site/a.py'], without frob-burst.py" in wrong.what
    assert "`burst setup` again" in wrong.advice


@pytest.mark.parametrize("access", [{}, {"allow-guest-user": True}])
def test_a_frobnicator_that_the_site_disabled_is_to_be_enabled(access) -> None:
    frob = {**FROB, "disable": True}
    config = {"ingest": {"frobnicator": frob}, "access": access}
    instance = RunningInstance(config=config)
    found = check_intake(instance, INSTALLED, Settings())
    (wrong,) = [each for each in found if each.level is WRONG]
    assert "[ingest.frobnicator] disable is true" in wrong.what
    assert wrong.advice.startswith("remove `disable` from that table")

# SPDX-License-Identifier: MIT
"""A system instance that a site has: its files are added to, and else left alone."""

import json
import os
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from burst.config import load
from burst.errors import ConfigError
from burst.lead_setup.add_slots import (
    compare_with_running,
    declared_hosts,
    without_resources,
)
from burst.lead_setup.adopt_lead import AdoptRequest, adopt_lead, next_commands
from burst.lead_setup.lead_config import read_config, read_lead
from burst.lead_setup.lead_plan import parse_slot
from burst.lead_setup.system_units import SystemPlaces
from burst.model.shape import Shape
from tests.builders import identity, view
from tests.lead_setup.adopted_site import BOOTSTRAP, ENTRIES, R
from tests.support.fluxlead import short_directory
from tests.support.full_disk import room_for
from tests.support.own_name import OWN_NAME, needs_name

SLOT = parse_slot("burst-0-[0-3]:8", Shape(1))


@pytest.fixture
def site() -> Iterator[Path]:
    with short_directory() as directory:
        (directory / "conf.d").mkdir()
        (directory / "conf.d/net.toml").write_text(BOOTSTRAP)
        resource = f'[resource]\npath = "{directory}/R"\nexclude = "test1"\n'
        (directory / "conf.d/resource.toml").write_text(resource)
        (directory / "R").write_text(json.dumps(R))
        yield directory


def request(site: Path, *slots: str, provider: str = "local") -> AdoptRequest:
    return AdoptRequest(
        config=site / "conf.d",
        settings=site / "burst/burst.toml",
        slots=tuple(parse_slot(slot, Shape(1)) for slot in slots) or (SLOT,),
        provider=provider,
        mode="scheduler",
        places=SystemPlaces(user="flux", group="flux"),
    )


def test_ranks_come_after_the_sites_and_nothing_else_changes(site: Path) -> None:
    found = adopt_lead(request(site))
    assert [(slot.hosts, slot.ranks) for slot in found.added] == [
        ("burst-0-[0-3]", "3-6")
    ]
    text = (site / "conf.d/net.toml").read_text()
    assert text.startswith("# Of the site.\n")
    names = ("test1", "test2", "test3", *(f"burst-0-{i}" for i in range(4)))
    assert declared_hosts(tomllib.loads(text)) == names
    execution = json.loads((site / "R").read_text())["execution"]
    assert execution["R_lite"][0] == R["execution"]["R_lite"][0]  # type: ignore[index]
    assert execution["properties"] == {"burst": "3-6", "burst-0": "3-6"}
    assert {path.name for path in found.copies} == {"net.toml.old", "R.old"}
    # Flux reads *.toml of the directory, so a copy must not have that name.
    assert len(list((site / "conf.d").glob("*.toml"))) == 2
    assert read_config(site / "conf.d")["resource"]["exclude"] == "test1"


def test_the_daemon_gets_settings_and_a_unit(site: Path) -> None:
    found = adopt_lead(request(site))
    settings, unit = found.written
    read = load(settings)
    assert read.intake.mode == "scheduler"
    assert read.providers["local"].options == {
        "dir": "/run/burst/flux",
        "max_nodes": 4,
        "cores": 8,
        "gpus": 0,
    }
    assert f"burst daemon -c {settings}\n" in unit.read_text()
    assert settings.stat().st_mode & 0o777 == 0o644
    commands = [" ".join(words) for words in next_commands(request(site))]
    assert f"burst setup --system --mode scheduler -c {settings}" in commands
    assert any(
        line.endswith(f"{unit} /etc/systemd/system/burst.service") for line in commands
    )


def test_a_second_time_nothing_is_added_and_settings_are_kept(site: Path) -> None:
    settings = adopt_lead(request(site)).written[0]
    settings.write_text("# edited\n")
    before = {path: path.read_text() for path in (site / "conf.d").glob("*.toml")}
    found = adopt_lead(request(site))
    assert (found.added, found.copies, found.kept) == ([], [], (settings,))
    assert settings.read_text() == "# edited\n"
    assert before == {path: path.read_text() for path in before}
    more = adopt_lead(request(site, "burst-0-[0-3]:8", "burst-1-[0-1]:8"))
    assert [slot.hosts for slot in more.added] == ["burst-1-[0-1]"]


def test_what_a_person_has_to_fill_in_is_told_once(site: Path) -> None:
    asked = request(site, provider="slurm")
    told = adopt_lead(asked).fill_in
    assert told.startswith("fill in ")
    assert told.endswith(f" of [providers.slurm] in {asked.settings}")
    assert adopt_lead(asked).fill_in == ""


def test_a_unit_that_was_edited_is_kept_and_told(site: Path) -> None:
    settings, unit = adopt_lead(request(site)).written
    ours = unit.read_text()
    # Not edited, it follows the settings.
    asked = request(site)
    moved = SystemPlaces(user="flux", group="flux", run=Path("/srv/flux"))
    found = adopt_lead(msgspec.structs.replace(asked, places=moved))
    assert found.written == (unit,)
    assert unit.read_text() != ours
    edited = f"{ours}# of the site\n"
    unit.write_text(edited)
    found = adopt_lead(asked)
    assert (found.written, found.kept) == ((), (unit, settings))
    (told,) = found.unlike
    assert told.startswith(f"{unit} is not what was written for burst")
    assert unit.read_text() == edited
    unit.unlink()
    assert adopt_lead(asked).written == (unit,)
    assert unit.read_text() == ours


def test_a_slot_that_is_there_with_other_nodes_is_told(site: Path) -> None:
    assert adopt_lead(request(site, "burst-0-[0-3]:8")).unlike == ()
    before = (site / "R").read_text()
    (told,) = adopt_lead(request(site, "burst-0-[0-3]:4:1")).unlike
    assert told == (
        "burst-0-[0-3] stays as it is declared, each 8 cores, not 4 cores, 1 GPU; to"
        " change it, correct R or [[resource.config]] by hand"
    )
    assert (site / "R").read_text() == before
    (site / "R").write_text(before.replace("burst-0-[0-3]", "burst-0-[0-2],burst-0-2"))
    with pytest.raises(ConfigError, match="R"):
        adopt_lead(request(site))


def test_a_provider_that_is_not_there_is_refused_before_anything(site: Path) -> None:
    before = (site / "conf.d/net.toml").read_text()
    with pytest.raises(ConfigError, match="type nope"):
        adopt_lead(request(site, provider="nope"))
    assert (site / "conf.d/net.toml").read_text() == before
    assert not (site / "burst").exists()
    # As is a slot that is partly there.
    adopt_lead(request(site))
    with pytest.raises(ConfigError, match="burst-0-2 is declared twice"):
        adopt_lead(request(site, "burst-0-[2-5]:8"))


def test_an_instance_without_a_certificate_is_refused(site: Path) -> None:
    path = site / "conf.d/net.toml"
    path.write_text(BOOTSTRAP.replace("curve_cert", "# curve_cert"))
    with pytest.raises(ConfigError, match="no curve_cert") as refused:
        adopt_lead(request(site))
    assert "burst keygen" in refused.value.advice


def test_entries_of_resources_get_one_more(site: Path) -> None:
    path = site / "conf.d/resource.toml"
    path.write_bytes(ENTRIES.replace("\n", "\r\n").encode())
    found = adopt_lead(request(site, "burst-0-[0-3]:8:1", "gpu-0:4"))
    assert [slot.ranks for slot in found.added] == ["3-6", "7"]
    assert {path.name for path in found.copies} == {
        *("net.toml.old", "resource.toml.old")
    }
    written = path.read_bytes()
    assert written.startswith(ENTRIES.replace("\n", "\r\n").encode())
    assert tomllib.loads(written.decode())["resource"]["config"][2:] == [
        {
            "hosts": "burst-0-[0-3]",
            "cores": "0-7",
            "gpus": "0",
            "properties": ["burst", "burst-0"],
        },
        {"hosts": "gpu-0", "cores": "0-3", "properties": ["burst", "gpu"]},
    ]
    assert json.loads((site / "R").read_text()) == R
    again = adopt_lead(request(site, "burst-0-[0-3]:8:1", "gpu-0:4"))
    assert (again.added, again.unlike) == ([], ())
    (told,) = adopt_lead(request(site, "gpu-0:9")).unlike
    assert told.startswith("gpu-0 stays as it is declared, each 4 cores, not 9 cores")


def test_of_a_path_and_entries_the_entries_count(site: Path) -> None:
    (site / "conf.d/early.toml").write_text(ENTRIES)
    adopt_lead(request(site))
    assert json.loads((site / "R").read_text()) == R
    entries = read_config(site / "conf.d")["resource"]["config"]
    assert entries[-1]["hosts"] == "burst-0-[0-3]"
    running = identity("test[1-3]")
    assert compare_with_running(site / "conf.d", running, view())[1]


def test_one_file_may_have_all_in_an_array_of_one_line(site: Path) -> None:
    entries = 'config = [{ hosts = "test[1-3]", cores = "0-3" }] # all'
    file = site / "one.toml"
    file.write_text(f"{BOOTSTRAP}\n[resource]\n{entries}\n[tbon]\n# none\n")
    asked = msgspec.structs.replace(request(site), config=file)
    adopt_lead(asked)
    tables = tomllib.loads(file.read_text())
    assert tables["resource"]["config"][1]["hosts"] == "burst-0-[0-3]"
    assert declared_hosts(tables)[-1] == "burst-0-3"
    rest = iter(file.read_text())
    assert all(letter in rest for letter in f"{BOOTSTRAP}\n[resource]\n# all\n# none")


def test_resources_that_cannot_be_added_to_are_told(site: Path) -> None:
    graph, path = site / "conf.d/graph.toml", site / "conf.d/resource.toml"
    graph.write_text('[resource]\nscheduling = "/etc/jgf"\n')
    with pytest.raises(ConfigError, match="names a graph for Fluxion"):
        adopt_lead(request(site))
    graph.unlink()
    path.write_text('[[resource.config]]\ncores = "0-3"\n')
    with pytest.raises(ConfigError, match=r"\[\[resource.config\]\] cannot be read"):
        adopt_lead(request(site))
    path.unlink()
    with pytest.raises(ConfigError, match="each node finds its own") as refused:
        adopt_lead(request(site))
    assert '[[resource.config]] hosts = "NAMES"' in refused.value.advice
    assert not (site / "burst").exists()


def test_of_several_files_that_one_is_changed_which_flux_goes_by(site: Path) -> None:
    """It reads them in the order of their names, and the last array counts."""
    later = site / "conf.d/net2.toml"
    target = site / "hosts.of.the.site"
    target.write_text('[bootstrap]\nhosts = [{ host = "test[1-3]" }]\n')
    later.symlink_to(target)
    (site / "conf.d/broker.toml").write_text("[tbon]\nfanout = 4\n")
    (site / "conf.d/.zz.toml").write_text("no toml")
    lead = read_lead(site / "conf.d")
    assert (lead.hosts, lead.resources) == (later, site / "R")
    assert lead.files.tables["tbon"] == {"fanout": 4}
    adopt_lead(request(site))
    assert later.is_symlink()
    assert "burst-0-" in target.read_text()
    assert (site / "conf.d/net.toml").read_text() == BOOTSTRAP


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[queues.burst]\n", True),
        ("[policy.limits]\n", True),
        ("[lead]\n", False),
        ("[[policy]]\n", False),
    ],
)
def test_the_daemons_settings_are_no_part_of_it(
    site: Path, text: str, part: bool
) -> None:
    (site / "conf.d/burst.toml").write_text(text)
    (name,) = tomllib.loads(text)
    assert (name in read_config(site / "conf.d")) == part


def test_flux_reads_every_file_and_so_does_adopt(site: Path) -> None:
    with pytest.raises(ConfigError, match=r"conf\.d"):
        adopt_lead(msgspec.structs.replace(request(site), config=site / "none/conf.d"))
    broken = site / "conf.d/zz.toml"
    broken.symlink_to(site / "nowhere")
    with pytest.raises(ConfigError, match=r"zz\.toml: cannot be read"):
        adopt_lead(request(site))


def test_tables_of_several_files_are_one_configuration(site: Path) -> None:
    (site / "conf.d/zz.toml").write_text("[resource]\nnoverify = true\n")
    assert read_config(site / "conf.d")["resource"] == {
        "path": f"{site}/R",
        "exclude": "test1",
        "noverify": True,
    }


def test_who_may_read_the_sites_files_does_not_change(site: Path) -> None:
    """As root with umask 077 the broker could not start again without that."""
    files = site / "conf.d/net.toml", site / "R"
    for path in files:
        path.chmod(0o644)
        if not os.geteuid():
            os.chown(path, 0, 12)
    linked = files[1].rename(site / "R.json")
    files[1].symlink_to(linked)
    before = os.umask(0o077)
    try:
        adopt_lead(request(site))
    finally:
        os.umask(before)
    for path in files:
        found = path.stat()
        assert stat.S_IMODE(found.st_mode) == 0o644
        assert os.geteuid() or (found.st_uid, found.st_gid) == (0, 12)
    assert files[1].is_symlink()
    assert stat.S_IMODE((site / "burst").stat().st_mode) == 0o755
    assert stat.S_IMODE((site / "burst/burst.toml").stat().st_mode) == 0o644


def test_what_an_interrupted_command_left_is_no_safe_restart(site: Path) -> None:
    before = (site / "R").read_text()
    adopt_lead(request(site))
    (site / "R").write_text(before)
    with pytest.raises(ConfigError, match=r"burst-0-\[0-3\] are in .* not in what"):
        adopt_lead(request(site))
    running = identity("test[1-3]")
    said, safe = compare_with_running(site / "conf.d", running, view())
    assert not safe
    assert "R of the files lacks burst-0-[0-3]" in said[1]
    # R that names no hosts, or that there is not, tells nothing of it.
    resources = json.loads(before)
    del resources["execution"]["nodelist"]
    (site / "R").write_text(json.dumps(resources))
    assert without_resources(site / "conf.d", ["x"]) == []
    (site / "conf.d/resource.toml").unlink()
    assert without_resources(site / "conf.d", ["x"]) == []


@pytest.mark.parametrize(
    "hosts", ["hosts = []", "", 'hosts = [{ host = "burst-0-0" }]']
)
def test_an_instance_without_own_hosts_is_told_to_declare_them(
    site: Path, hosts: str
) -> None:
    text = f'[bootstrap]\ncurve_cert = "/none"\n{hosts}\n'
    (site / "conf.d/net.toml").write_text(text)
    with pytest.raises(ConfigError, match=r'host = "NAME"'):
        adopt_lead(request(site, "burst-0-0:4"))


@needs_name
def test_only_the_user_whose_certificate_it_is_is_the_daemons(site: Path) -> None:
    path = site / "conf.d/net.toml"
    path.write_text(
        path.read_text().replace("/etc/flux/system/curve.cert", f"{site}/c")
    )
    (site / "c").touch()
    user = "nobody" if OWN_NAME != "nobody" else "root"
    places = SystemPlaces(user=user, group="x")
    asked = msgspec.structs.replace(request(site), places=places)
    with pytest.raises(ConfigError, match=f"as {user} could not read it.*--user"):
        adopt_lead(asked)
    places = SystemPlaces(user=OWN_NAME, group="x")
    adopt_lead(msgspec.structs.replace(asked, places=places))


def test_settings_that_are_kept_and_are_otherwise_are_told(site: Path) -> None:
    settings = adopt_lead(request(site)).written[0]
    assert adopt_lead(request(site)).unlike == ()
    asked = msgspec.structs.replace(request(site, provider="none"), mode="hold")
    assert adopt_lead(asked).unlike == (
        '[intake] mode is "scheduler" there; write "hold", or give --mode',
    )
    # The unit is that of the provider which is there: guests' jobs need the IMP.
    assert "NoNewPrivileges=no\n" in (site / "burst/burst.service").read_text()
    settings.write_text('[intake]\nmode = "scheduler"\n')
    (told,) = adopt_lead(request(site)).unlike
    assert told == "it has no provider of type local; add one, or give --provider"
    settings.write_text('[lead]\nslots = ["burst-9-[0-3]"]\n')
    asked = msgspec.structs.replace(asked, mode="hold")
    (told,) = adopt_lead(asked).unlike
    assert told == (
        '[lead] slots is ["burst-9-[0-3]"] there; it has to have ["burst-0-[0-3]"], too'
    )
    settings.write_text("no toml")
    before = {path: path.read_text() for path in site.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError):
        adopt_lead(request(site, "burst-1-[0-3]:8"))
    assert before == {path: path.read_text() for path in before}


def test_a_sites_queue_of_our_name_is_told_before_anything_is_written(
    site: Path,
) -> None:
    before = sorted(path.name for path in site.rglob("*"))
    queues = site / "conf.d/queues.toml"
    queues.write_text('[queues.burst]\nrequires = ["batch"]\n')
    asked = msgspec.structs.replace(request(site), mode="queue")
    with pytest.raises(ConfigError, match="already has a queue burst for other jobs"):
        adopt_lead(asked)
    assert sorted(p.name for p in site.rglob("*")) == sorted([*before, queues.name])
    # By another name in the settings, or in another mode, it goes on.
    asked.settings.parent.mkdir()
    asked.settings.write_text('[intake]\nqueue = "lent"\n')
    assert adopt_lead(asked).added
    assert adopt_lead(request(site)).kept


def test_what_setup_wrote_is_no_queue_of_the_site(site: Path) -> None:
    ours = '[queues.burst]\nrequires = ["burst"]\n'
    (site / "conf.d/zz-burst-lead.toml").write_text(ours)
    assert adopt_lead(msgspec.structs.replace(request(site), mode="queue")).added


def test_ranks_that_the_site_declared_for_bursts_are_known_by_their_property(
    site: Path,
) -> None:
    (site / "conf.d/net.toml").write_text(BOOTSTRAP.replace("[1-3]", "[1-5]"))
    r = {
        "version": 1,
        "execution": {
            "R_lite": [{"rank": "0-4", "children": {"core": "0-3"}}],
            "properties": {"burst": "3-4"},
        },
    }
    (site / "R").write_text(json.dumps(r))
    assert adopt_lead(request(site, "test[4-5]:4")).added == []
    with pytest.raises(ConfigError, match="test3: hosts of the instance itself"):
        adopt_lead(request(site, "test[3-5]:4"))
    (site / "R").write_text(json.dumps(r).replace("3-4", "x"))
    with pytest.raises(ConfigError, match="restore it from a copy"):
        adopt_lead(request(site, "test[4-5]:4"))


def test_what_is_refused_leaves_nothing_behind(site: Path) -> None:
    """Neither a record, by which unadopt would take the site's own hosts for ours."""
    path, resource = site / "conf.d/net.toml", site / "conf.d/resource.toml"
    own = "test[1-3],burst-0-[0-1]"
    path.write_text(BOOTSTRAP.replace("test[1-3]", own))
    resource.write_text(ENTRIES.replace("test[1-3]", own))
    before = sorted(site.rglob("*"))
    # A slot of that name is none of bursts.
    with pytest.raises(ConfigError, match=r"burst-0-\[0-1\]: hosts of the instance"):
        adopt_lead(request(site))
    with pytest.raises(ConfigError, match=r"test\[2-3\]: hosts of the instance itself"):
        adopt_lead(request(site, "test[2-3]:4"))
    assert sorted(site.rglob("*")) == before
    path.write_text(BOOTSTRAP)
    with (
        pytest.raises(ConfigError, match="nothing was changed; make room there"),
        room_for(8),
    ):
        adopt_lead(request(site))
    assert path.read_text() == BOOTSTRAP
    # No file can have its name and more, so that it cannot be kept.
    resources = (site / "R").rename(site / f"{'x' * 250}")
    resource.write_text(f'[resource]\npath = "{resources}"\n')
    before = sorted(site.rglob("*"))
    with pytest.raises(ConfigError, match="nothing was changed"):
        adopt_lead(request(site))
    assert sorted(site.rglob("*")) == before

# SPDX-License-Identifier: MIT
"""`view` with form job: Flux out of an image of its own, beside an application's."""

import os
from pathlib import Path

import pytest

from burst.errors import ConfigError
from burst.kits.pods import PodSettings
from burst.kits.pods.template import isolated
from burst.provider import BurstSpec, Program
from tests.kits.pods import by_kind, pod_spec, read_settings, replace, run
from tests.support.commands import run_captured

VIEW = """
view = "flux-view:0.88.0"
offers.nodes.gpus = 1
offers.nodes.memory = "8Gi"
"""


def read(more: str = "") -> PodSettings:
    """Return the settings of a provider with a view and these lines in its table."""
    return read_settings(VIEW + more)


def test_both_images_are_pulled_as_the_container_broker_says(spec: BurstSpec) -> None:
    broker = '[{ name = "broker", imagePullPolicy = "Always" }]'
    for more, policy in (("", "IfNotPresent"), (broker, "Always")):
        lines = f"pod.spec.containers = {more}" if more else ""
        pod = pod_spec(spec, read(lines))
        made = (*pod["initContainers"], *pod["containers"])
        assert [each["imagePullPolicy"] for each in made] == [policy] * 2
        # In a MiniCluster, too.
        form = f'form = "operator"\n{lines}'
        spec_of = by_kind(spec, read_settings(form))["MiniCluster"]["spec"]
        assert spec_of["containers"][0]["imagePullPolicy"] == policy


def test_flux_is_copied_before_the_broker_starts(spec: BurstSpec) -> None:
    pod = pod_spec(spec, read())
    (init,), (broker,) = pod["initContainers"], pod["containers"]
    assert (init["name"], init["image"]) == ("flux-view", "flux-view:0.88.0")
    assert broker["image"] == "flux:0.88.0"
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for number, path in enumerate(("/mnt/flux/view", "/opt/software")):
        name = f"view-{number}"
        assert volumes[name] == {"name": name, "emptyDir": {}}
        mount = {"name": name, "mountPath": path, "readOnly": True}
        assert mount in broker["volumeMounts"]
        copy = {"name": name, "mountPath": f"/burst/view/{number}"}
        assert init["volumeMounts"][number] == copy
    # Nothing of the burst is there: neither certificate nor settings.
    assert len(init["volumeMounts"]) == 2
    # No more than the broker's: the pod's size stays that of the offer.
    amounts = {"cpu": "4", "memory": "8Gi"}
    assert init["resources"]["requests"] == amounts
    assert init["resources"]["limits"] == {"memory": "8Gi"}
    assert init["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_without_it_there_is_no_init_container(spec: BurstSpec) -> None:
    pod = pod_spec(spec, replace(read(), view=""))
    assert "initContainers" not in pod
    assert not [v for v in pod["volumes"] if v["name"].startswith("view-")]
    data = by_kind(spec, replace(read(), view=""))["ConfigMap"]["data"]
    assert "PATH" not in data["start"]


def test_others_of_the_site_come_after_it(spec: BurstSpec) -> None:
    pod = {"spec": {"initContainers": [{"name": "fetch", "image": "busybox"}]}}
    found = pod_spec(spec, replace(read(), pod=pod))["initContainers"]
    assert [container["name"] for container in found] == ["flux-view", "fetch"]


def test_an_isolated_burst_has_it_and_is_entered_by_its_flux(spec: BurstSpec) -> None:
    alone = replace(spec, program=Program(kind="interactive"))
    assert pod_spec(alone, read())["initContainers"]
    assert "/mnt/flux/view/bin/flux proxy" in isolated.access("jobs", "pod", read())
    own = replace(read(), flux="/opt/flux/bin/flux")
    assert "/opt/flux/bin/flux proxy" in isolated.access("jobs", "pod", own)
    without = replace(read(), view="")
    assert "-- flux proxy" in isolated.access("jobs", "pod", without)


def image_of(place: Path) -> Path:
    """Make what the image of a view has: a link, too, to what is copied beside it."""
    view, software = place / "image/views/5yd3", place / "image/software/flux/bin"
    (view / "bin").mkdir(parents=True)
    (view / "lib/python3.11/site-packages").mkdir(parents=True)
    software.mkdir(parents=True)
    program = '#!/bin/sh\nprintf "%s %s" "$0" "$PYTHONPATH"\n'
    (software / "flux").write_text(program)
    (software / "flux").chmod(0o755)
    (view / "bin/flux").symlink_to(place / "software/flux/bin/flux")
    return place / "image"


def init_command(spec: BurstSpec, settings: PodSettings, place: Path) -> list[str]:
    """Return what the init container runs, with its copies below a directory."""
    for number in range(2):
        (place / f"burst/view/{number}").mkdir(parents=True)
    command = pod_spec(spec, settings)["initContainers"][0]["command"]
    return [word.replace("/burst/view", f"{place}/burst/view") for word in command]


def test_both_scripts_find_flux(spec: BurstSpec, tmp_path: Path) -> None:
    """Run as they are, but for where things are mounted."""
    image = image_of(tmp_path)
    targets = tmp_path / "view", tmp_path / "software"
    entries = (f"{image}/views/*:{targets[0]}", f"{image}/software:{targets[1]}")
    settings = replace(read(), view_paths=entries, user=os.geteuid())
    environ = {"PATH": os.environ["PATH"]}
    run(init_command(spec, settings, tmp_path), environ)
    for number, target in enumerate(targets):
        (tmp_path / f"burst/view/{number}").rename(target)
    start = by_kind(spec, settings)["ConfigMap"]["data"]["start"]
    for name in ("config", "secret", "run"):
        (tmp_path / "burst" / name).mkdir()
    (tmp_path / "burst/config/hosts").write_text("burst-0-0\n")
    (tmp_path / "burst/secret/curve.cert").write_text("key")
    script = tmp_path / "start"
    script.write_text(start.replace("/burst/", f"{tmp_path}/burst/"))
    environ["JOB_COMPLETION_INDEX"] = "0"
    program, modules = run(["/bin/sh", script], environ).split()
    assert program == f"{targets[0]}/bin/flux"
    assert modules == f"{targets[0]}/lib/python3.11/site-packages"


def test_an_image_without_it_says_what_is_not_there(
    spec: BurstSpec, tmp_path: Path
) -> None:
    place = tmp_path / "none"
    for count, words in ((0, "cannot stat"), (2, "view_paths[0]: there are 2: ")):
        for number in range(count):
            (place / str(number)).mkdir(parents=True)
        entries = (f"{place}/*:/mnt/flux/view", "/opt:/opt/software")
        settings = replace(read(), view_paths=entries)
        command = init_command(spec, settings, tmp_path / str(count))
        done = run_captured(command)
        assert done.returncode == 1
        assert words in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("view_paths = []", "view_paths: is empty"),
        ("view_paths = ['/opt/flux']", r"view_paths\[0\]: '/opt/flux' is not /DIRECT"),
        ("view_paths = ['/a/../b:/a']", r"view_paths\[0\]: .* is not /DIRECTORY:"),
        ("view_paths = ['/$(x):/a']", r"view_paths\[0\]: .* is not /DIRECTORY:"),
        ("view_paths = ['/a:/a b']", r"view_paths\[0\]: .* is not /DIRECTORY:"),
        ("view_paths = ['/a:']", r"view_paths\[0\]: '' is not an absolute path"),
        ("view_paths = ['/a:/a', '/b:b']", r"view_paths\[1\]: 'b' is not an absolute"),
        (
            "view_paths = ['/a:/']",
            r"view_paths\[0\]: '/' is not an absolute path below /",
        ),
        ("view_paths = ['/a:/burst/x']", r"view_paths\[0\]: certificate, keys and"),
        ("view_paths = ['/a:/tmp']", r"view_paths\[0\]: followers have a /tmp"),
        ("view_paths = ['/a:/a', '/b:/a/']", r"view_paths\[1\]: /a/ is also view_path"),
        ("host_paths = ['/opt/software']", r"view_paths\[1\]: .* is also host_paths"),
        ("cwd = ['/opt/software']", r"view_paths\[1\]: .* is also cwd"),
        (
            "pod.spec.containers = [{ name = 'broker', volumeMounts ="
            " [{ name = 'v', mountPath = '/opt/software' }] }]",
            r"view_paths\[1\]: .* is also pod.spec.containers.broker.volumeMounts",
        ),
        ("form = 'operator'\nview_paths = ['/a:/a']", "view_paths: the Flux Operator"),
        ("pod.spec.volumes = [{ name = 'view-0' }]", "volumes.view-0: has Flux"),
        (
            "pod.spec.initContainers = [{ name = 'flux-view' }]",
            "initContainers.flux-view: copies Flux for the broker; use view",
        ),
    ],
)
def test_what_is_wrong_is_refused_by_its_key(table: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"providers.far: .*{words}"):
        read(f"{table}\n")


def test_paths_without_an_image_are_refused() -> None:
    with pytest.raises(ConfigError, match="view_paths: is for view, which is not set"):
        read_settings("view_paths = ['/a:/a']")

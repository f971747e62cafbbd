# SPDX-License-Identifier: MIT
"""The Dockerfile as far as it can be read: no daemon of Docker is needed for that."""

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TEXT = (ROOT / "Dockerfile").read_text()
LINES = [
    line.split(maxsplit=1)
    for line in re.sub(r"\\\n\s*", "", TEXT).splitlines()
    if line and not line.startswith("#")
]


def words(instruction: str) -> list[str]:
    return [rest for name, rest in LINES if name == instruction]


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def needed(extras: set[str]) -> set[str]:
    """Return all that these extras bring in, by what is installed here."""
    found: set[str] = set()
    waiting = [("flux-burst-orchestrator", extras)]
    while waiting:
        name, wanted = waiting.pop()
        for text in metadata.requires(name) or ():
            requirement = Requirement(text)
            marker = requirement.marker
            chosen = [{"extra": extra} for extra in wanted] or [{"extra": ""}]
            if marker and not any(marker.evaluate(extra) for extra in chosen):
                continue
            if (canonical := canonicalize_name(requirement.name)) not in found:
                found.add(canonical)
                waiting.append((canonical, requirement.extras))
    return found - {"flux-burst-orchestrator"}


def extras() -> set[str]:
    [value] = [word.partition("=")[2] for word in words("ARG") if "EXTRAS" in word]
    return set(value.split(","))


def test_each_stage_begins_from_one_digest() -> None:
    assert [stage.split()[0] for stage in words("FROM")] == ["${PYTHON}"] * 2
    [base] = [word for word in words("ARG") if word.startswith("PYTHON=")]
    assert re.fullmatch(r"PYTHON=python:3\.11-slim-\w+@sha256:[0-9a-f]{64}", base)


def test_what_is_copied_is_there_and_let_in() -> None:
    let_in = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = {
        source.removeprefix("./")
        for line in words("COPY")
        if "--from" not in line
        for source in line.split()[:-1]
    }
    assert copied == let_in
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert "readme" in PROJECT
    assert PROJECT["readme"] in copied


def test_it_has_every_extra_that_a_daemon_needs() -> None:
    assert extras() == set(PROJECT["optional-dependencies"]) - {"dev", "plot"}


def test_all_that_it_installs_is_pinned() -> None:
    pins = pinned()
    assert needed(extras()) <= set(pins)
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pins.values())


def test_it_runs_the_daemon_as_the_user_of_the_manifests() -> None:
    [entrypoint], [command] = words("ENTRYPOINT"), words("CMD")
    assert json.loads(entrypoint) == ["burst"]
    assert "burst" in PROJECT["scripts"]
    assert json.loads(command) == ["daemon"]
    lead = ROOT / "manifests" / "parts" / "lead-job" / "lead.yaml"
    pod = yaml.safe_load(lead.read_text())["spec"]["template"]["spec"]
    user = pod["securityContext"]["runAsUser"]
    assert words("USER") == [f"{user}:{user}"]
    # After it nothing is run that would want to be root.
    names = [name for name, _ in LINES]
    assert "RUN" not in names[names.index("USER") :]


@pytest.mark.parametrize("part", ["lead-job", "lead-minicluster"])
def test_the_manifests_name_its_version(part: str) -> None:
    text = (ROOT / "manifests" / "parts" / part / "lead.yaml").read_text()
    assert f"image: flux-burst-orchestrator:{PROJECT['version']}\n" in text
    assert f"-t flux-burst-orchestrator:{PROJECT['version']} ." in TEXT


@pytest.mark.parametrize(
    "part", ["overlays/plain", "overlays/kind", "overlays/gke", "ensemble"]
)
def test_the_overlays_name_its_version_and_the_digest_of_the_base(part: str) -> None:
    path = ROOT / "manifests" / part / "kustomization.yaml"
    named = {
        entry["name"]: entry for entry in yaml.safe_load(path.read_text())["images"]
    }
    assert named["flux-burst-orchestrator"]["newTag"] == PROJECT["version"]
    lead = (ROOT / "manifests" / "parts" / "lead-job" / "lead.yaml").read_text()
    assert f"@{named['ubuntu']['digest']}\n" in lead

# SPDX-License-Identifier: MIT
"""A docker and a kind without containers: `python programs.py WORLD docker|kind ...`.

What exists is in the directory WORLD: a container is a directory in `containers`, with
the files id, cluster, role and state, and its own files below `root`; an image of
docker is a file in `images`. `docker ps` is in harness.py. A file `docker-error` is
what docker says instead of working; `create-error` is what kind says after half of its
work, `create-killed` that it is killed there; while there is a file `gate`, kind waits
there.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path


class World:
    """The programs, and what exists."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.containers = path / "containers"

    def docker(self, words: Sequence[str]) -> None:
        """Do as docker does."""
        self._fail_if("docker-error")
        text = " ".join(words)
        if words[0] == "exec":
            rest = [word for word in words[1:] if word != "-i"]
            self._exec(self.containers / rest[0], rest[1:])
        elif words[0] == "inspect":
            if not (self.containers / words[-1]).exists():
                sys.exit(f"Error: No such container: {words[-1]}")
            say('{"kind": {"IPAddress": "172.18.0.7"}}')
        elif words[:2] == ["network", "inspect"]:
            ranges = '[{"Gateway": "fc00::1"}, {"Gateway": "172.18.0.1"}]'
            say(ranges if words[-1] == "kind" else "null")
        elif words[:2] == ["image", "inspect"]:
            self._fail_if("inspect-error")
            if not (self.path / "images" / words[-1]).exists():
                sys.exit(f"Error response from daemon: No such image: {words[-1]}")
        else:
            sys.exit(f"fake docker: unknown: {text}")

    def kind(self, words: Sequence[str]) -> None:
        """Do as kind does."""
        self._fail_if("docker-error")
        given = (word.partition("=") for word in words if word.startswith("--"))
        options = {name: value for name, _, value in given}
        name = options.get("--name", "")
        if words[0] == "create":
            self._create(name, options)
        elif words[0] == "delete":
            say(f'Deleting cluster "{name}" ...')
            for box in self._boxes(name):
                shutil.rmtree(box)
        elif words[0] == "load":
            self._load(name, words[1], words[2])
        elif words[0] == "export":
            plane = self.containers / f"{name}-control-plane"
            kubeconfig = Path(options["--kubeconfig"])
            kubeconfig.touch(0o600)
            kubeconfig.write_text((plane / "id").read_text())
        elif words[0] == "version":
            if (self.path / "wait-in-version").exists():
                self._wait()
            say("kind v0.0.0 fake")
        else:
            sys.exit(f"fake kind: unknown: {words}")

    def make(self, cluster: str, role: str, number: str = "") -> Path:
        """Make a container of a cluster."""
        box = self.containers / f"{cluster}-{role}{number}"
        identity = os.urandom(32).hex()
        part = self.path / f"part-{identity}"
        (part / "root/kind").mkdir(parents=True)
        for file, content in (
            ("id", identity),
            ("cluster", cluster),
            ("role", role),
            ("state", "running"),
        ):
            (part / file).write_text(content)
        self.containers.mkdir(exist_ok=True)
        part.rename(box)
        return box

    def _create(self, name: str, options: dict[str, str]) -> None:
        say(f'Creating cluster "{name}" ...')
        if list(self._boxes(name)):
            sys.exit(f"ERROR: node(s) already exist for a cluster with the name {name}")
        text = _read(options["--config"])
        roles = [part.split('"')[0] for part in text.split('"role":"')[1:]]
        for number, role in enumerate(roles):
            self.make(name, role, str(number) if number > 1 else "")
        say(" • Starting control-plane 🕹️  ...")
        self._wait()
        if (self.path / "create-killed").exists():
            (self.path / "create-killed").unlink()
            os.killpg(0, signal.SIGKILL)
        error = self.path / "create-error"
        if error.exists():
            for box in self._boxes(name):  # as kind does, but for --retain
                shutil.rmtree(box)
            sys.exit(f"ERROR: failed to create cluster: {error.read_text()}")
        Path(options["--kubeconfig"]).touch(0o600)

    def _wait(self) -> None:
        while (self.path / "gate").exists():
            time.sleep(0.01)

    def _load(self, name: str, what: str, image: str) -> None:
        if what == "image-archive" and not Path(image).exists():
            sys.exit(f"ERROR: stat {image}: no such file or directory")
        if what == "docker-image":
            self._image(image)
        for box in self._boxes(name):
            with (box / "root/images").open("a") as file:
                file.write(f"{image}\n")

    def _exec(self, box: Path, words: Sequence[str]) -> None:
        if not box.exists() or (box / "state").read_text() != "running":
            sys.exit(f"Error response from daemon: container {box.name} is not running")
        if words[0] == "kubectl":
            with (box / "root/applied").open("a") as file:
                file.write(sys.stdin.read())
        else:
            sys.exit(f"fake docker: exec of {words}")

    def _image(self, image: str) -> None:
        if not (self.path / "images" / image).exists():
            sys.exit(f'ERROR: image: "{image}" not present locally')

    def _boxes(self, cluster: str) -> Iterator[Path]:
        for box in sorted(self.containers.glob("*")):
            if (box / "cluster").read_text() == cluster:
                yield box

    def _fail_if(self, knob: str) -> None:
        if (self.path / knob).exists():
            sys.exit((self.path / knob).read_text())


def say(*words: object) -> None:
    """Write a line of output at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def _read(path: str) -> str:
    return Path(path).read_text()


if __name__ == "__main__":
    world = World(Path(sys.argv[1]))
    with (world.path / "calls").open("a") as calls:
        calls.write(f"{' '.join(sys.argv[2:])}\n")
    getattr(world, sys.argv[2])(sys.argv[3:])

# SPDX-License-Identifier: MIT
"""`burst lead init --multi-user`: a system instance's files, and whose they are."""

from __future__ import annotations

import os
import pwd
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.cli.cli_harness import CommandResult, burst
from tests.embedded_instance import short_directory
from tests.support.own_name import OWN_NAME, needs_name

IS_ROOT = not os.geteuid()
# Whom root can give files to, or whoever runs this.
USER = "nobody" if IS_ROOT else OWN_NAME
UID = pwd.getpwnam(USER).pw_uid if IS_ROOT else os.geteuid()
pytestmark = needs_name
FLUX = """\
#!/bin/sh
case "$*" in
version) printf 'commands:\\t0.88.0\\nlibflux-core:\\t0.88.0\\n{security}' ;;
"config builtin libexecdir") echo {lib} ;;
"config builtin shell_path") echo {lib}/flux-shell ;;
"config builtin confdir") echo {etc} ;;
*) exit 1 ;;
esac
"""
SECURITY = r"libflux-security:\t0.15.0\n"


class Host(msgspec.Struct):
    """A host with a Flux of which only the paths are asked."""

    path: Path

    def install(self, *, security: str = SECURITY, imp: bool = True) -> None:
        for name in ("bin", "lib", "etc"):
            (self.path / name).mkdir(exist_ok=True)
        program = self.path / "bin/flux"
        paths = {"lib": self.path / "lib", "etc": self.path / "etc"}
        program.write_text(FLUX.format(security=security, **paths))
        program.chmod(0o755)
        if imp:
            pattern = f"\0{self.path}/etc/imp/conf.d/*.toml\0"
            (self.path / "lib/flux-imp").write_bytes(pattern.encode())

    @property
    def lead(self) -> Path:
        return self.path / "lead"

    def init(self, *words: str, user: str = USER, place: str = "lead") -> CommandResult:
        own = ("--hosts", "lead-0", "--cores", "2", "--gpus", "0", "--user", user)
        directory = str(self.path / place)
        return burst("lead", "init", directory, "--multi-user", *own, *words)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with short_directory() as directory:
        directory.chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}/bin:{os.environ['PATH']}")
        made = Host(directory)
        made.install()
        yield made


def owner_and_mode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, stat.S_IMODE(found.st_mode)


def test_broker_toml_lets_users_in_and_their_jobs_run_by_the_imp(host: Host) -> None:
    said = host.init()
    assert said.status == 0, said.stderr
    tables = tomllib.loads((host.lead / "broker.toml").read_text())
    assert tables["access"] == {"allow-guest-user": True, "allow-root-owner": True}
    assert tables["exec"] == {"imp": f"{host.path}/lib/flux-imp"}
    # What keeps users' other jobs off lent nodes is part of each mode.
    assert tables["ingest"]["frobnicator"]["plugins"]
    assert tables["burst"] == {"scheduler": True}
    # systemd starts the daemon, and a second one would end at once.
    assert not (host.lead / "flux/rc1.d").exists()


def test_the_certificate_is_the_users_alone_and_all_else_is_for_all_to_read(
    host: Host,
) -> None:
    before = os.umask(0o077)
    try:
        assert host.init().status == 0
    finally:
        os.umask(before)
    assert owner_and_mode(host.lead / "burst.cert") == (UID, 0o600)
    others = [path for path in host.lead.rglob("*") if path.name != "burst.cert"]
    assert len(others) > 10
    for path in (host.lead, *others):
        mode = 0o755 if path.is_dir() else 0o644
        assert owner_and_mode(path) == (os.geteuid(), mode), path


def test_what_was_in_the_directory_keeps_its_mode(host: Host) -> None:
    host.lead.mkdir(mode=0o755)
    host.lead.chmod(0o755)
    secret = host.lead / "key"
    secret.touch(mode=0o600)
    assert host.init().status == 0
    assert owner_and_mode(secret) == (os.geteuid(), 0o600)


def test_root_is_told_what_to_install_word_for_word(host: Host) -> None:
    said = host.init().stdout
    place = "install -D -C --backup=numbered -o root -g root -m 644"
    own, etc = host.lead / "flux", host.path / "etc"
    imp = host.path / "lib/flux-imp"
    for line in (
        f"{place} {own}/security/imp.toml {etc}/imp/conf.d/imp.toml",
        f"{place} {own}/security/security.toml {etc}/security/conf.d/security.toml",
        f"chown root:root {imp}",
        f"chmod 4755 {imp}",
        f"{place} {own}/flux.service /etc/systemd/system/flux.service",
        f"{place} {own}/burst.service /etc/systemd/system/burst.service",
    ):
        assert f"    {line}\n" in said
    table = tomllib.loads((own / "security/imp.toml").read_text())["exec"]
    assert table["allowed-users"] == [USER]
    assert table["allowed-shells"] == [f"{host.path}/lib/flux-shell"]
    assert stat.S_IMODE(imp.stat().st_mode) & stat.S_ISUID == 0


def test_in_mode_queue_the_queue_of_other_jobs_is_started_once(host: Host) -> None:
    assert host.init("--mode", "queue", "--statedir", "/srv/state").status == 0
    script = host.lead / "flux/start-queues"
    assert owner_and_mode(script)[1] == 0o755
    assert "/srv/state/started-batch" in script.read_text()
    unit = (host.lead / "flux/burst.service").read_text()
    assert f"\nExecStartPre={script}\n" in unit


def test_it_refuses_what_cannot_work_and_writes_nothing(host: Host) -> None:
    for user, words in {
        "no-such-user": "there is no user 'no-such-user' .*useradd --system",
        "root": "must not run as root",
    }.items():
        refused = host.init(user=user)
        assert refused.status == 1
        assert re.search(words, refused.stderr), refused.stderr
    (host.path / "lib/flux-imp").unlink()
    assert "there is no IMP at" in host.init().stderr
    host.install(security="")
    assert "was built without flux-security" in host.init().stderr
    assert not host.lead.exists()


def test_a_directory_that_others_cannot_enter_is_refused(host: Host) -> None:
    host.path.chmod(0o700)
    refused = host.init()
    assert refused.status == 1
    assert f"`chmod o+x {host.path}`" in refused.stderr
    assert not (host.lead / "broker.toml").exists()


def test_a_directory_below_a_file_is_refused(host: Host) -> None:
    (host.path / "file").touch()
    refused = host.init(place="file/lead")
    assert refused.error.startswith(f"{host.path}/file/lead"), refused
    assert "Not a directory" in refused.error


@pytest.mark.skipif(not IS_ROOT, reason="only root can be made to write elsewhere")
def test_root_writes_nothing_where_another_user_can_put_a_link(host: Host) -> None:
    host.lead.mkdir(mode=0o755)
    os.chown(host.lead, UID, -1)
    refused = host.init()
    assert refused.status == 1
    assert f"users other than root can change {host.lead}" in refused.stderr
    assert not list(host.lead.iterdir())


@pytest.mark.skipif(not IS_ROOT, reason="files are given away by root alone")
def test_nobody_else_than_root_can_give_files_away() -> None:
    code = (
        "import os, pathlib; from burst.lead_setup.system_lead import find_owner;"
        f" os.seteuid({UID});"
        " find_owner('daemon', pathlib.Path('/run'), pathlib.Path('/srv'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "run it as root, or as daemon" in done.stderr


@pytest.mark.skipif(not IS_ROOT, reason="another user's program takes root")
def test_it_warns_where_others_can_change_what_the_daemon_is_started_by(
    monkeypatch: pytest.MonkeyPatch, host: Host
) -> None:
    theirs = host.path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 61000, 61000)
    monkeypatch.setattr(sys, "executable", str(theirs / "python"))
    said = host.init()
    warning = f"{theirs} can be changed by users other than root and {USER}"
    assert warning in said.stderr
    assert f"burst.service runs {theirs}/python -m burst as {USER}" in said.stderr

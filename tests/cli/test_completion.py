# SPDX-License-Identifier: MIT
"""Tab in real shells: what is typed so far, and what the shell offers."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from burst.model.jobid import format_f58
from tests.cli.cli_harness import BURST, CliHarness
from tests.embedded_instance import EmbeddedInstance
from tests.support.waiting import HANG_S, wait_until

# How each shell is asked: the script is loaded, and its function called as Tab does.
_ASK = {
    "bash": """\
eval "$(burst completion bash)"
COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
{function} {program}
printf '%s\\n' "${{COMPREPLY[@]}}"
""",
    "zsh": """\
compdef() {{ : }}
compadd() {{ print -l -- $completions }}
_describe() {{ print -l -- ${{completions_with_descriptions%%:*}} }}
eval "$(burst completion zsh)"
words=({typed}); CURRENT=${{#words}}
{function}
""",
    "fish": "burst completion fish | source; complete -C {line} | string split -f1 \\t",
}
SHELLS = [
    pytest.param(
        shell,
        marks=pytest.mark.skipif(not shutil.which(shell), reason=f"no {shell} here"),
    )
    for shell in _ASK
]


class Typist:
    """Types to a shell about one lead."""

    def __init__(self, shell: str, uri: str, directory: Path) -> None:
        self._shell = shell
        self._environment = {
            "PATH": f"{Path(BURST).parent}:{os.environ['PATH']}",
            "HOME": str(directory),
            "FLUX_URI": uri,
            "LC_ALL": "C.UTF-8",
        }
        for name in ("PYTHONPATH", "FPATH", "MODULE_PATH"):
            if name in os.environ:
                self._environment[name] = os.environ[name]

    def tab(self, *words: str) -> set[str]:
        """Return what is offered for the last word; there is no other output."""
        function = f"_{words[0].replace('-', '_')}_completion"
        typed = " ".join(shlex.quote(word) for word in words)
        line = shlex.quote(" ".join(words))
        script = _ASK[self._shell].format(
            typed=typed, line=line, function=function, program=words[0]
        )
        done = subprocess.run(
            [self._shell, "-c", script],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert done.stderr == ""
        return set(done.stdout.split())

    def wait_for(self, expected: set[str], *words: str) -> None:
        """Complete the last word until exactly these are offered.

        A completion that takes too long, as on a busy machine, offers nothing.
        """
        wait_until(
            lambda: self.tab(*words) == expected,
            lambda: f"{expected}: {self.tab(*words)}",
        )


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lent(cli: CliHarness) -> Iterator[str]:
    """A burst that lives, by its id."""
    with cli.daemon():
        assert cli.run("request", "-N2").status == 0
        yield cli.status()["bursts"][0]["id"]


def test_commands_and_options(shell: str, tmp_path: Path) -> None:
    typist = Typist(shell, "", tmp_path)
    assert typist.tab("burst", "st") == {"status"}
    assert typist.tab("burst", "gc", "--any") == {"--any-owner"}
    assert typist.tab("run-burst", "--lead-h") == {"--lead-host"}
    assert typist.tab("flux-burst", "cos") == {"cost"}


def test_what_the_daemon_knows(
    shell: str, lent: str, cli: CliHarness, tmp_path: Path
) -> None:
    typist = Typist(shell, cli.uri, tmp_path)
    typist.wait_for({lent}, "burst", "down", "")
    assert typist.tab("burst", "down", "other") == set()
    typist.wait_for({"local"}, "burst", "enable", "")
    typist.wait_for({"local"}, "burst", "request", "--provider", "lo")
    typist.wait_for({"burst-0", "burst-1"}, "run-burst", "--name", "burst-")
    assert cli.run("down", lent).status == 0
    wait_until(lambda: cli.status()["bursts"][0]["state"] == "inactive", "its end")
    typist.wait_for({lent}, "burst", "explain", "burst-")
    assert typist.tab("burst", "down", "") == set()


def test_a_held_job_by_either_spelling(
    instance: EmbeddedInstance, cli: CliHarness, tmp_path: Path
) -> None:
    typist = Typist("bash", cli.uri, tmp_path)
    job = format_f58(instance.submit(nodes=9))
    with cli.daemon():
        wait_until(lambda: job in cli.status()["held"], "the job to be held")
        typist.wait_for({job}, "burst", "release", "")
        typist.wait_for({job}, "burst", "explain", job[:2])
        typist.wait_for({f"f{job[1:]}"}, "burst", "release", f"f{job[1]}")
        assert typist.tab("burst", "release", job, "") == set()


def test_without_a_daemon_providers_are_those_of_the_settings(
    cli: CliHarness, tmp_path: Path
) -> None:
    typist = Typist("bash", cli.uri, tmp_path)
    given = ("-c", str(cli.config))
    typist.wait_for({"local"}, "burst", "enable", *given, "")
    assert typist.tab("burst", "down", *given, "") == set()


def test_no_lead_and_settings_that_are_wrong_are_silent(tmp_path: Path) -> None:
    wrong = tmp_path / "burst.toml"
    wrong.write_text("[intake]\npatience = 1\nx")
    typist = Typist("bash", "embedded:///nowhere", tmp_path)
    assert typist.tab("burst", "down", "") == set()
    assert typist.tab("burst", "enable", "-c", str(wrong), "") == set()


def test_a_daemon_that_hangs_is_not_waited_for(cli: CliHarness, tmp_path: Path) -> None:
    with cli.daemon() as daemon:
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            # Nor for ever: the typist waits for its tab.
            assert Typist("bash", cli.uri, tmp_path).tab("burst", "down", "") == set()
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        wait_until(cli.is_known, "the daemon to go on")

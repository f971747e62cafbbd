# SPDX-License-Identifier: MIT
"""OpenPBS, LSF and ssh without them: `python FILE WORLD PROGRAM ...`.

A job is a directory in WORLD/jobs with the files name, script and group (its process
group); it is gone once it has ended. A machine is this host under another name.
`WORLD/refuses` has what a batch system says that takes no job.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path

WORLD = Path(sys.argv[1]) if __name__ == "__main__" else Path()
JOBS = WORLD / "jobs"


def submit(name: str, environment: dict[str, str]) -> None:
    """Take the job on standard input, and start it."""
    refuses = WORLD / "refuses"
    if refuses.exists():
        sys.exit(refuses.read_text())
    job = JOBS / str(len(list(JOBS.iterdir())) + 1)
    job.mkdir()
    (job / "name").write_text(name)
    (job / "script").write_text(sys.stdin.read())
    child = subprocess.Popen(
        ["/bin/sh", str(job / "script")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    (job / "group").write_text(str(child.pid))


def jobs() -> list[tuple[str, str]]:
    """Return number and name of what has not ended."""
    found = []
    for job in sorted(JOBS.iterdir()):
        if runs(int((job / "group").read_text())):
            found.append((job.name, (job / "name").read_text()))
        else:
            shutil.rmtree(job)
    return found


def runs(group: int) -> bool:
    """Tell whether any process of a group runs."""
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if fields[2] == str(group) and fields[0] not in "ZX":
            return True
    return False


def end(number: str) -> None:
    """End a job, if it runs."""
    if number in dict(jobs()):
        # It may end by itself after it was listed.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int((JOBS / number / "group").read_text()), signal.SIGTERM)


def after(words: list[str], option: str) -> str:
    """Return the word after an option."""
    return words[words.index(option) + 1]


def ssh(machine: str, command: str) -> None:
    """Run a command on a machine that is this host, unless it is away."""
    if (WORLD / f"{machine}-is-away").exists():
        sys.exit(255)
    print("Welcome to", machine, flush=True)  # noqa: T201
    if (WORLD / f"{machine}-has-no-pgrep").exists():
        sys.exit(127)
    os.execvp("sh", ["sh", "-c", command])


def main(program: str, words: list[str]) -> None:
    """Be that program."""
    match program:
        case "qsub":
            submit(after(words, "-N"), {})
        case "bsub":
            submit(after(words, "-J"), {"LSB_HOSTS": "n1 n1 n1 n1 n2 n2 n2 n2"})
        case "pbsdsh":
            command = words[words.index("--") + 1 :]
            os.execvp(command[0], command)
        case "blaunch":
            os.execvp(words[2], words[2:])
        case "qdel" | "bkill":
            end(words[0])
        case "qstat":
            me, other = f"{pwd.getpwuid(os.getuid()).pw_name}@login1", "other@login1"
            others = {
                "6.server": {"Job_Name": "a.job", "Job_Owner": me, "job_state": "Q"},
                "7.server": {"Job_Name": "v_1.2.3", "Job_Owner": me, "job_state": "R"},
                "8.server": {"Job_Name": "$.$.$", "Job_Owner": other, "job_state": "R"},
            }
            ours = {
                number: {"Job_Name": name, "Job_Owner": me, "job_state": "R"}
                for number, name in jobs()
            }
            print(json.dumps({"Jobs": {**others, **ours}}))  # noqa: T201
        case "bjobs":
            rows = [
                {"JOBID": number, "JOB_NAME": name, "STAT": "RUN", "PEND_REASON": ""}
                for number, name in [("7", "v_1.2.3"), *jobs()]
            ]
            print(json.dumps({"COMMAND": "bjobs", "RECORDS": rows}))  # noqa: T201
        case "ssh":
            assert "-oConnectTimeout=5" in words, "a machine that is away is waited for"
            ssh(words[3], words[4])


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[3:])

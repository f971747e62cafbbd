# SPDX-License-Identifier: MIT
"""OpenPBS, LSF and ssh without them: `python FILE WORLD PROGRAM ...`.

A job is a directory in WORLD/jobs with the files name, script and group (its process
group); it is gone once it has ended, or listed with a file `ends` as one that cannot be
ended any more. A machine is this host under another name. Files in WORLD:

    refuses          what a batch system says that takes no job
    ended            what qstat says of a job that has ended since qselect listed it
    MACHINE-is-away, MACHINE-has-no-pgrep
    MACHINE-waits    for which machine a command there waits to be asked, too
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
import time
from pathlib import Path

WORLD = Path(sys.argv[1]) if __name__ == "__main__" else Path()
JOBS = WORLD / "jobs"
HANG_S = 10.0
"""Seconds after which a command is given up that waits for another machine."""


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
        if (job / "ends").exists() or runs(int((job / "group").read_text())):
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
    if number in dict(jobs()) and not (JOBS / number / "ends").exists():
        # It may end by itself after it was listed.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int((JOBS / number / "group").read_text()), signal.SIGTERM)


def end_all(numbers: list[str], says: str) -> None:
    """End jobs; say so of those that cannot be ended, and fail then."""
    for number in numbers:
        end(number)
    failed = [number for number in numbers if (JOBS / number / "ends").exists()]
    sys.exit("\n".join(says.format(number) for number in failed) or 0)


def me() -> str:
    """Return the user's name. PBS is for users who have one."""
    return pwd.getpwuid(os.getuid()).pw_name


def query(numbers: list[str]) -> None:
    """Print some jobs, or all of all users, with variables of any bytes."""
    known: list[tuple[str, object, str, str]] = [
        ("6", "a.job", me(), "Q"),
        ("7", "lammps-1.2.3", me(), "R"),
        ("8", "burst.a.b.c", "other", "R"),
        ("9", 20, me(), "R"),
    ]
    for number, name in jobs():
        ends = (JOBS / number / "ends").exists()
        known.append((number, name, me(), "E" if ends else "R"))
    rows = {
        f"{number}.server": {
            "Job_Name": name,
            "Job_Owner": f"{owner}@login1",
            "job_state": state,
            "Variable_List": {"PLACE": "@"},
        }
        for number, name, owner, state in known
        if not numbers or number in numbers
    }
    text = json.dumps({"Jobs": rows}).replace('"@"', '"M\xfcnchen"')
    sys.stdout.buffer.write(text.encode("latin-1"))


def after(words: list[str], option: str) -> str:
    """Return the word after an option."""
    return words[words.index(option) + 1]


def ssh(machine: str, command: str) -> None:
    """Run a command on a machine that is this host, unless it is away."""
    if (WORLD / f"{machine}-is-away").exists():
        sys.exit(255)
    (WORLD / f"{machine}-asked").touch()
    waits = WORLD / f"{machine}-waits"
    if waits.exists():
        other = WORLD / f"{waits.read_text()}-asked"
        until = time.monotonic() + HANG_S
        while not other.exists():
            if time.monotonic() > until:
                sys.exit(255)
            time.sleep(0.05)
    print("Welcome to", machine, flush=True)  # noqa: T201
    if (WORLD / f"{machine}-has-no-pgrep").exists():
        sys.exit(127)
    os.execvp("sh", ["sh", "-c", command])


def pbs(program: str, words: list[str]) -> None:
    """Be that program of OpenPBS."""
    match program:
        case "qsub":
            if "ngpus" in " ".join(words):
                sys.exit("qsub: Unknown resource Resource_List.select")
            name = after(words, "-N")
            if after(words, "-o") != "localhost:/dev/null":
                Path(f"{name}.o1").touch()
            submit(name, {})
        case "qselect":
            assert words == ["-u", me()]
            mine = ["6", "7", "9", *(number for number, _ in jobs())]
            mine += ["5"] * (WORLD / "ended").exists()
            print(*(f"{number}.server" for number in mine), sep="\n")  # noqa: T201
        case "qstat":
            numbers = [word.removesuffix(".server") for word in words[3:]]
            query(numbers)
            if "5" in numbers:
                print((WORLD / "ended").read_text(), file=sys.stderr)  # noqa: T201
                sys.exit(35)
        case "qdel":
            numbers = [word.removesuffix(".server") for word in words]
            end_all(numbers, "qdel: Request invalid for state of job {}.server")
        case "pbsdsh":
            command = words[words.index("--") + 1 :]
            os.execvp(command[0], command)


def lsf(program: str, words: list[str]) -> None:
    """Be that program of LSF."""
    match program:
        case "bsub":
            submit(after(words, "-J"), {"LSB_MCPU_HOSTS": "n1 4 n2 4"})
        case "bjobs":
            rows = [
                {"JOBID": number, "JOB_NAME": name, "STAT": "RUN", "PEND_REASON": ""}
                for number, name in [("7", "lammps-1.2.3"), *jobs()]
            ]
            print(json.dumps({"COMMAND": "bjobs", "RECORDS": rows}))  # noqa: T201
        case "bkill":
            end_all(words, "Job <{}>: Job has already finished")
        case "blaunch":
            os.execvp(words[2], words[2:])


def main(program: str, words: list[str]) -> None:
    """Be that program."""
    if program == "ssh":
        assert "-oConnectTimeout=5" in words, "a machine that is away is waited for"
        ssh(words[3], words[4])
    elif program.startswith("b"):
        lsf(program, words)
    else:
        pbs(program, words)


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[3:])

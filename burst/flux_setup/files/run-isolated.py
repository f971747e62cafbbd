# SPDX-License-Identifier: MIT
"""Runs a job inside an isolated burst, once, and writes how it ended.

    flux python run-isolated.py FLUX JOBSPEC RESULT

It is the initial program of the burst's own lead (flux-broker(1)). FLUX is the path of
the program flux, JOBSPEC and RESULT are files. The job of JOBSPEC (RFC 14) is submitted
here; the script of a `flux batch` job is run directly, since this instance has just the
nodes of that job. Output goes to that of this program. `{"exit_status": N}` is written
to RESULT.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# The exit status that Flux gives a job that runs out of time: the shell's for SIGALRM.
_TIMED_OUT = 142
_SIGNALED = 128
# Seconds from SIGTERM to SIGKILL, as Flux has it for jobs.
_GRACE_S = 5.0


def run(flux, jobspec):
    """Run the job to its end; return its exit status."""
    script = find_script(jobspec)
    return run_script(jobspec, *script) if script else run_job(flux, jobspec)


def run_job(flux, jobspec):
    """Submit the job here and wait for its end."""
    system = jobspec["attributes"]["system"]
    here = {k: v for k, v in os.environ.items() if not k.startswith("FLUX_")}
    system["environment"] = {**here, **system["environment"]}
    made = subprocess.run(
        [flux, "job", "submit"],
        input=json.dumps(jobspec),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if made.returncode:
        return exit_status_of(made.returncode)
    return wait([flux, "job", "attach", made.stdout.strip()], os.environ, None)


def find_script(jobspec):
    """Return text and arguments of a `flux batch` script; None for any other job.

    A script with options for its broker, or with other files, needs an instance of its
    own, which `flux batch` starts: then it is a job like others.
    """
    system = jobspec["attributes"]["system"]
    command = jobspec["tasks"][0]["command"]
    files = system.get("files") or {}
    if command[:3] != ["flux", "broker", "{{tmpdir}}/script"] or set(files) != {
        "script"
    }:
        return None
    data, encoding = files["script"]["data"], files["script"].get("encoding")
    text = base64.b64decode(data) if encoding == "base64" else data.encode()
    return text, command[3:]


def run_script(jobspec, text, arguments):
    """Run a script in this instance, as if it were the initial program."""
    system = jobspec["attributes"]["system"]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "script")
        path.write_bytes(text)
        path.chmod(0o700)
        environment = {**os.environ, **system["environment"]}
        limit = float(system.get("duration") or 0) or None
        return wait([str(path), *arguments], environment, limit)


def wait(command, environment, limit):
    """Run a command for at most `limit` seconds; return its exit status."""
    process = subprocess.Popen(command, env=environment)
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"it ran out of time after {limit:g} s\n")
        end(process)
        return _TIMED_OUT
    return exit_status_of(status)


def exit_status_of(returncode):
    """Return the exit status as of a shell: 128 plus the signal that ended a process.

    As burst.model.exit_status, which cannot be imported in an isolated burst.
    """
    return returncode if returncode >= 0 else _SIGNALED - returncode


def end(process):
    """Send SIGTERM to a process, and SIGKILL if it does not end."""
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    flux, source, result = sys.argv[1:]
    status = run(flux, json.loads(Path(source).read_text()))
    Path(result).write_text(json.dumps({"exit_status": status}))

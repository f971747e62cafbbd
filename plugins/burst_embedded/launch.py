# SPDX-License-Identifier: MIT
"""Start one process of a job by exec: `launch.py PARENT CWD FALLBACK COMMAND...`.

It is run by path and without site packages, so that it takes milliseconds. It does what
is needed between fork and exec, because Python code may hang in a forked child of a
process with threads (ZeroMQ has some).
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(  # pragma: no cover - another process, without site: tests/…/test_tasks.py
    parent: str, cwd: str, fallback: str, *command: str
) -> None:
    """Run the command so that the kernel kills it with its parent."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):
        sys.exit(1)  # the parent was gone before prctl
    try:
        os.chdir(cwd or fallback)
    except OSError as error:
        sys.stderr.write(
            f"Could not change dir to {cwd}: {error.strerror}. Going to {fallback}"
            " instead\n"
        )
        os.chdir(fallback)
    # Python ignores this signal, and the command would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.stderr.flush()
    try:
        os.execvp(command[0], command)  # noqa: S606 - a job's own command
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":  # pragma: no cover - as above
    main(*sys.argv[1:])

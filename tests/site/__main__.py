# SPDX-License-Identifier: MIT
"""A site to try by hand: `python -m tests.site [SCHEDULER] [--accounting]`, as root.

It is there until this is ended, in any way. What it prints says how to enter it.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys

from tests.site.box import Box
from tests.site.site import SCHEDULERS, SIMPLE, Site, SiteShape

_ENTER = """\
#!/bin/sh
# enter USER COMMAND...: runs a command as root, flux, ann or bob on host {name}.
user=$1 home=/home/$1; shift
[ "$user" != root ] || home=/root
set -- setpriv --reuid="$user" --regid="$user" --init-groups "$@"
exec {enter} HOME=$home USER=$user LOGNAME=$user "$@"
"""


def _write_script(box: Box) -> str:
    # Of the command up to the variables of root, which are replaced.
    enter = shlex.join(box.command("root", ()))
    path = box.directory / "enter"
    path.write_text(_ENTER.format(name=box.name, enter=enter))
    path.chmod(0o755)
    return str(path)


def main() -> None:
    """Make a site, and wait."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scheduler", nargs="?", choices=SCHEDULERS, default=SIMPLE)
    parser.add_argument("--accounting", action="store_true")
    parser.add_argument("--r-in-a-file", action="store_true")
    shape = SiteShape(**vars(parser.parse_args()))
    with Site(shape) as site:
        for box in site.boxes:
            sys.stdout.write(f"{box.name}: {_write_script(box)} USER COMMAND...\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()

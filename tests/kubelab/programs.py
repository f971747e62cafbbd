# SPDX-License-Identifier: MIT
"""The programs of one lab: start, wait until ready, measure, kill."""

import os
import pathlib
import subprocess
import time
import urllib.request

from tests.support.ports import free_port
from tests.support.waiting import HANG_S


def free_ports(count):
    """-> as many ports that nobody has now, none twice."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)


def http_get(url, token=None, context=None):
    """-> the body of a 200 answer, or None. Proxies of this machine's environment stay out."""
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if context:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=5) as answer:
            return answer.read()
    except OSError:  # refused, timed out, or an HTTP status such as 404
        return None


class Programs:
    """Child processes with a log each under `root`; they die with the thread that started them."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.procs = {}
        self.seconds = {}  # what took how long

    def spawn(self, name, *argv, env=None):
        """Starts a program, its output in root/NAME.log."""
        command = ["setpriv", "--pdeathsig", "KILL", "--", *map(str, argv)]
        direct = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        with open(self.root / f"{name}.log", "wb") as log:
            self.procs[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.root,
                env=direct | (env or {}),
                start_new_session=True,  # Ctrl-C is for the tests, not for the API server
            )

    def log_tail(self, name):
        """-> the end of a program's log, for error messages."""
        return (self.root / f"{name}.log").read_text(errors="replace")[-3000:]

    def wait_for(self, what, check, timeout=HANG_S, needs=()):
        """Waits until check() is true, notes the seconds; a dead program ends the wait."""
        start = time.monotonic()
        while not check():
            for name in needs:
                if self.procs[name].poll() is not None:
                    raise RuntimeError(f"{name} died:\n{self.log_tail(name)}")
            if time.monotonic() - start > timeout:
                tails = "\n".join(self.log_tail(name) for name in needs)
                raise TimeoutError(f"{what}: not after {timeout} s\n{tails}")
            time.sleep(0.05)
        self.seconds[what] = round(time.monotonic() - start, 2)

    def kill_all(self):
        """SIGKILL: their data is thrown away next, so a slow goodbye buys nothing."""
        for proc in self.procs.values():
            proc.kill()
        for proc in self.procs.values():
            proc.wait()

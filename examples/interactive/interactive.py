# SPDX-License-Identifier: MIT
"""Uses a Flux instance in a cluster from outside of it, through Flux's own Python.

    flux python interactive.py POD NAMESPACE COMMAND...

runs COMMAND on each node of the instance whose lead is in POD, one job for each node,
and prints what they wrote. It needs `kubectl exec` on the pod, no open port and no
shell there: the handle is connected by `kubectl-ssh` beside this file.
"""

import os
import sys
import time
from pathlib import Path

import flux
import flux.job
from flux.resource import list as resources

SOCKET = "/burst/run/broker/local"
"""The broker's socket in its pod; /burst/socket/broker/local if it is shared."""


def connect(pod, namespace, socket=SOCKET):
    """Return a handle of the instance whose broker is in the pod."""
    os.environ.setdefault("FLUX_SSH", str(Path(__file__).with_name("kubectl-ssh")))
    return flux.Flux(f"ssh://{pod}.{namespace}{socket}")


def run_on_all(handle, command):
    """Run a command once on each node that is up; return what each job wrote."""
    jobs = []
    for rank in resources.resource_list(handle).get().up.ranks:
        spec = flux.job.JobspecV1.from_command(command, num_nodes=1, exclusive=True)
        # Otherwise one node may run all: one may end before the next is placed.
        spec.setattr("system.constraints", {"ranks": [str(rank)]})
        spec.cwd = "/tmp"  # noqa: S108  of the pod alone
        # This host's environment is not for the pod.
        spec.environment = {}
        jobs.append(flux.job.submit(handle, spec, waitable=True))
    for job in jobs:
        flux.job.wait(handle, job)
    return [flux.job.output.job_output(handle, job).stdout for job in jobs]


if __name__ == "__main__":
    pod, namespace, *command = sys.argv[1:]
    began = time.monotonic()
    handle = connect(pod, namespace)
    size = handle.attr_get("size")
    took = time.monotonic() - began
    sys.stderr.write(f"connected to {size} brokers in {took:.2f} s\n")
    for text in run_on_all(handle, command):
        sys.stdout.write(text)

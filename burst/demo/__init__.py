# SPDX-License-Identifier: MIT
"""`burst demo`: runs two whole bursts on this machine, with the commands of a user.

play        runs the demo, takes everything down, reports, returns the exit status
story       the commands in their order, and what the demo waits for
jobs        the jobs, and how each has to end
processes   starts, marks, logs and ends all processes
"""

# SPDX-License-Identifier: MIT
"""The state machine: random interleavings of users, faults and crashes, and what holds.

`world.py` simulates what is around the daemon, `steps.py` is what can happen in it,
`invariants.py` what must hold, `explore.py` makes interleavings and shortens those that
fail. `python -m tests.machine` explores for as long as one says (`make soak`).
"""

# SPDX-License-Identifier: MIT
"""A lead and followers in pure Python, for the demo and the tests. Not a scheduler.

Flux is the real thing. This is a stand-in with the same joining rules, so that the
whole path of a burst can be seen on a machine that has no Flux.
"""

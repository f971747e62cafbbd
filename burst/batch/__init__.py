# SPDX-License-Identifier: MIT
"""A lead in a user's own allocation: a batch job that bursts.

`submit` is the user's side, `node` starts a broker on each node of the allocation,
`script` is what rank 0 runs around the user's script, and `sweep` takes down what one
left that could not do it itself. `plan` is what they agree on.
"""

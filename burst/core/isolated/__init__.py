# SPDX-License-Identifier: MIT
"""Isolated bursts: instances of their own that run a job in place of the lead.

The job stays here, held, as long as its burst lives, and is ended with the result of
the run there. It must never run twice. So its burst is provisioned only once Flux
cannot start the job here. If it is not known whether the job ran, it does not run
again.

`behaviour` is what `burst.core.behaviour` dispatches to.
"""

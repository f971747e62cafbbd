# SPDX-License-Identifier: MIT
"""Isolated bursts: instances of their own that run a job in the lead's stead.

The job stays here, held, as long as its burst lives, and is ended with the result of
the run there. It must never run twice. So its burst is not provisioned before Flux
cannot start the job here; and where it is not known whether it ran, it does not run
again.

`behaviour` is what `burst.core.behaviour` dispatches to.
"""

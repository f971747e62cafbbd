# SPDX-License-Identifier: MIT
"""A lead and followers in Python, for the demo and for tests on machines without Flux.

It behaves as Flux does where bursts are concerned. What it has of Flux:
ranks fixed by `[bootstrap] hosts`, one shared CURVE certificate, the checks at hello,
job states and events, a queue whose head blocks what is behind it, and how a rank is
drained, lost and joined again. What it does not have: a tree of brokers, users other
than the instance owner, queues, modules, and jobs that survive the lead.

    boot        reads broker.toml and R
    process     a broker's own directory, and how it is stopped
    node        one rank's resources                               pure
    pool        all resources: fit, allocation                    pure
    jobspec     made for a submission, read for its command       pure
    job         one job                                           pure
    jobqueue    all jobs: states, events, order                   pure
    views       jobs and ranks as clients are shown them          pure
    wire        messages between lead and followers, sockets
    calls       messages between lead and clients
    followers   the lead's side of the followers' socket
    control     the lead's side of the clients' socket
    lead        the loop that holds these together
    follower    the loop of one that joins
    tasks       processes of jobs, on the lead and on followers
    launch      starts one process of a job
    client      the clients' side: calls
    stream      the clients' side: messages that no call asked for
  streams     the instance as it changes, and the service `burst`
    commands    burst embedded lead, follower
    jobcommands burst embedded submit, jobs, attach, cancel, urgency
"""

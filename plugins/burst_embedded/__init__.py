# SPDX-License-Identifier: MIT
"""A lead and followers in Python, for the demo and for tests on machines without Flux.

It behaves as Flux does where bursts are concerned. What it has of Flux:
ranks fixed by `[bootstrap] hosts`, one shared CURVE certificate, the checks at hello,
job states and events, a queue whose head blocks what is behind it, and how a rank is
drained, lost and joined again. What it does not have: a tree of brokers, users other
than the instance owner, queues, modules, and jobs that survive the lead.

Its requests, events and responses are those of Flux, so its clients are `burst.flux`
over another connection, and its followers are clients as well.

    wire         messages, and sockets
    server       the lead's side: who may connect, requests, streams, services
    methods      what may be called, by Flux's topics
    handle       the clients' side: a connection, as `burst.flux` needs it
    lead         rank 0: the loop that holds these together
    follower     a client that joins and runs tasks
    jobqueue     all jobs: states, events, order; job, jobspec
    pool         all resources: fit, allocation                    pure
    store        the daemon's records
    tasks        processes of jobs, on the lead and on followers; launch starts one
    boot         reads broker.toml and R
    process      a broker's own directory, and how it is stopped
    lead_client  the lead as the daemon uses it
    commands     `burst embedded`
"""

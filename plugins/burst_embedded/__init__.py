# SPDX-License-Identifier: MIT
"""A lead and followers in Python, for the demo and for tests on machines without Flux.

For bursts it behaves as Flux does. It has these parts of Flux: ranks fixed by
`[bootstrap] hosts`, one shared CURVE certificate, the checks at hello, job states and
events, a queue whose head blocks the jobs behind it, and ranks that are drained, lost
and joined again. It does not have a tree of brokers, users other than the instance
owner, queues, modules, or jobs that survive the lead.

Its requests, events and responses are those of Flux: its clients use `burst.flux` over
another connection, and its followers are clients, too.

    wire         messages, and sockets
    server       the lead's side: who may connect, requests, streams, services
    methods      the methods of the lead, by Flux's topics
    handle       the clients' side: a connection for `burst.flux`
    lead         rank 0: the loop that connects these parts
    follower     a client that joins and runs tasks
    jobqueue     all jobs: states, events, order; job
    pool         all resources: fit, allocation                    pure
    store        the daemon's records
    tasks        processes of jobs, on the lead and on followers; launch starts one
    boot         reads broker.toml and R
    process      a broker's own directory, and how it is stopped
    lead_client  the lead as the daemon uses it
    commands     `burst embedded`
"""

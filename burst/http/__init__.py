# SPDX-License-Identifier: MIT
"""The daemon's answers over HTTP: health, metrics, status.

`routes.py` has the types to add further routes, `daemon_routes.py` the daemon's routes,
`server.py` the server, `service.py` its start, change and end.
"""

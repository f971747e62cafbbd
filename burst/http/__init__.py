# SPDX-License-Identifier: MIT
"""What the daemon answers over HTTP: health, metrics, status.

`routes.py` has the types by which further routes are added, `daemon_routes.py` those
that there are, `server.py` the server, `service.py` its start, change and end.
"""

# SPDX-License-Identifier: MIT
"""When pending jobs start on own nodes, as the scheduler does it."""

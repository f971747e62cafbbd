# SPDX-License-Identifier: MIT
"""What is known and decided of each job: rules, checks, holds, queues."""

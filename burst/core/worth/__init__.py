# SPDX-License-Identifier: MIT
"""When a burst pays: the wait that is expected here against what would be bought."""

# SPDX-License-Identifier: MIT
"""Where a settings file is looked for that no command names."""

from __future__ import annotations

VARIABLE = "BURST_CONFIG"
"""The environment variable that names one."""
USUAL_PATHS = ("~/.config/burst/burst.toml", "/etc/flux/burst.toml")
"""A user's own, then the site's; the first that exists is read."""
LOOKED_FOR = ", ".join((f"${VARIABLE}", *USUAL_PATHS))
"""These as text."""

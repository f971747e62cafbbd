# SPDX-License-Identifier: MIT
"""Where the settings file is looked for if the command line names none."""

from __future__ import annotations

VARIABLE = "BURST_CONFIG"
"""The environment variable that names the file."""
USUAL_PATHS = ("~/.config/burst/burst.toml", "/etc/flux/burst.toml")
"""The user's own file, then the site's; the first that exists is read."""
LOOKED_FOR = ", ".join((f"${VARIABLE}", *USUAL_PATHS))
"""The variable and the paths, as text."""

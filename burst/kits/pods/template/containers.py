# SPDX-License-Identifier: MIT
"""The names of the containers of a follower's pod."""

from __future__ import annotations

BROKER = "broker"
"""The name of the broker's container with form job."""
VIEW = "flux-view"
"""The name of the init container that copies Flux out of the view's image. The Flux
Operator uses the same name."""
PREPARE = "prepare"
"""The init container that puts files into place, with `multi_user`."""
MUNGED = "munged"
"""The native sidecar that has the munge key, with `multi_user`."""
PROBE = "probe"
"""The name of the probe's container. A probe also uses it as its follower's host
name."""
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
"""The annotation that tells kubectl which container to use if none is named."""

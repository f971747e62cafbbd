# SPDX-License-Identifier: MIT
"""The token that clients have to send."""

from __future__ import annotations

import base64
import binascii
import hmac


def is_token(header: str, token: bytes, *, basic: bool) -> bool:
    """Tell whether a header `Authorization` has the token.

    The token may come as `Bearer TOKEN`; with `basic` also as the password of `Basic`
    with any name, for which a browser asks a person. The time of the comparison does
    not show how much of a wrong token is right.
    """
    scheme, _, sent = header.partition(" ")
    given = sent.strip().encode("utf-8", "surrogateescape")
    if scheme.lower() == "basic" and basic:
        try:
            given = base64.b64decode(given, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(given, token)

# SPDX-License-Identifier: MIT
"""Reads the credentials of a cloud, which are arguments of Libcloud's driver."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from burst.errors import ConfigError
from burst.kits.secret_file import read_private

_MOST_BYTES = 64 * 1024
"""Largest size of the credentials' file."""
_LINES = 'write lines such as key = "..." into a file with mode 0600'


def read_credentials(path: str) -> dict[str, Any]:
    """Return the content of the file; a `key` that names a file is that file's content.

    So a change of either file is seen. Raises ConfigError, whose text has no secret.
    """
    text = read_private(path, "credentials", _LINES, _MOST_BYTES)
    try:
        found = tomllib.loads(text.decode())
    except ValueError:
        # The error's text may have a part of the file.
        raise ConfigError(f"credentials: {path}: is not TOML", _LINES) from None
    key = found.get("key")
    if isinstance(key, str) and key.startswith(("/", "~/")):
        found["key"] = _content(key, path)
    return found


def _content(key: str, path: str) -> str:
    """Return the content of a service account's file, which `gce` has as its key."""
    try:
        content = Path(key).expanduser().read_text()
    except OSError as error:
        why = error.strerror
    except ValueError:
        why = "is not text"
    except RuntimeError:
        why = "this user has no home directory"
    else:
        if _is_key(content):
            return content
        why = "has no private_key"
    raise ConfigError(
        f"credentials: {path}: key: {key}: {why}",
        "let key name the JSON file of a service account",
    )


def _is_key(content: str) -> bool:
    """Tell whether JSON has a key; other content, such as PEM, is Libcloud's to read.

    Of JSON without one, such as a user's login, Libcloud's error has all secrets.
    """
    if not content.lstrip().startswith("{"):
        return True
    try:
        return isinstance(json.loads(content).get("private_key"), str)
    except ValueError:
        return False  # half written

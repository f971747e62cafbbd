# SPDX-License-Identifier: MIT
"""Fetches a follower's files once. It runs in the VM as root, and needs only Python.

The listener is known by the SHA-256 of its TLS certificate, which the user data has. It
gives the files for a token, which it accepts once. `start` is written last: if it
exists, as after a reboot, nothing is fetched.
"""

import base64
import hashlib
import json
import os
import pwd
import socket
import ssl
import subprocess
import sys
import time
from typing import Any

PAUSE_S, LIMIT_S = 5, 20


def ask(given: Any) -> Any:
    """Return the listener's answer. Raises OSError, ValueError if it is cut off."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Its certificate is from no authority, and is compared as a whole below.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    where = (given["address"], given["port"])
    plain = socket.create_connection(where, LIMIT_S)
    with plain, context.wrap_socket(plain) as connection:
        seen = hashlib.sha256(connection.getpeercert(True) or b"").hexdigest()
        if seen != given["fingerprint"]:
            sys.exit("this is not the listener that the user data names")
        words = {key: given[key] for key in ("burst", "host", "token", "home")}
        connection.sendall(json.dumps(words).encode() + b"\n")
        with connection.makefile("rb") as answer:
            return json.loads(answer.read().decode())


def write(path: str, content: str, user: str) -> None:
    """Write a file that this user alone can read."""
    part = path + ".part"
    found = pwd.getpwnam(user)
    with open(
        os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
    ) as file:
        os.fchown(file.fileno(), found.pw_uid, found.pw_gid)
        file.write(base64.b64decode(content))
    os.rename(part, path)


def main() -> None:
    """Fetch, or exit with a message."""
    with open(sys.argv[1]) as file:
        given = json.load(file)
    if os.path.exists(os.path.join(given["home"], "start")):
        return
    # The daemon may be down for a while: try as long as the token is valid.
    ends = time.monotonic() + given["lasts"]
    while time.monotonic() < ends:
        try:
            answer = ask(given)
        except (OSError, ValueError) as error:
            sys.stderr.write(f"no answer yet: {error}\n")
            time.sleep(PAUSE_S)
            continue
        if "error" in answer:
            sys.exit("refused: " + answer["error"])
        for path, content, user in answer["files"]:
            write(path, content, user)
        for unit in answer["restart"]:
            subprocess.call(["systemctl", "restart", unit])  # noqa: S607
        return
    sys.exit("the listener did not answer")


if __name__ == "__main__":
    main()

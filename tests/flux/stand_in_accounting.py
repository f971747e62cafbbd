# SPDX-License-Identifier: MIT
"""A stand-in for `flux account-service`, run by Flux's own Python in a lead.

    flux python stand_in_accounting.py answers '[{"userid": 0, ...}]'
    flux python stand_in_accounting.py hangs

It answers `accounting.list_users` as that of flux-accounting 0.60 does (its database
replaced by the rows that are given), or takes requests and never answers.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import flux
from flux.constants import FLUX_MSGTYPE_REQUEST


def serve(handle: Any, mode: str, rows: list[dict[str, Any]]) -> None:
    def list_users(handle: Any, _type: int, message: Any, _arg: Any) -> None:
        if mode == "hangs":
            return
        asked = message.payload
        if asked.get("format") is None:
            text = "list-users: AttributeError: 'NoneType' object has no attribute"
            handle.respond_error(message, 0, text)
            return
        columns = asked["fields"].split(",")
        found = [{name: row[name] for name in columns} for row in rows]
        assert asked["json"]
        handle.respond(message, {"list_users": json.dumps(found, indent=2)})

    handle.service_register("accounting").get()
    watcher = handle.msg_watcher_create(
        list_users, FLUX_MSGTYPE_REQUEST, "accounting.list_users"
    )
    watcher.start()
    sys.stdout.write("serves\n")
    sys.stdout.flush()
    handle.reactor_run()


if __name__ == "__main__":
    serve(flux.Flux(), sys.argv[1], json.loads((*sys.argv, "[]")[2]))

# SPDX-License-Identifier: MIT
"""Writes a container image of one layer, without a container builder: a docker-archive tar."""

import hashlib
import io
import json
import platform
import tarfile

EMPTY_DIRS = ("dev", "etc", "proc", "root", "sys", "tmp")
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
PATH_ENV = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _root_owned(info):
    """Same bytes on each run: no owner, no time."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


def _layer(files):
    """-> an uncompressed tar of the empty directories and of {destination: source path}."""
    buf = io.BytesIO()
    with tarfile.open(fileobj=buf, mode="w") as tar:
        for name in EMPTY_DIRS:
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(info)
        for dest, source in files.items():
            tar.add(source, arcname=dest.strip("/") or ".", filter=_root_owned)
    return buf.getvalue()


def write_image(out, name, files, entrypoint=(), env=()):
    """Writes the image `name` (with its tag) holding {destination: source} to the file `out`."""
    layer = _layer(files)
    layer_id = hashlib.sha256(layer).hexdigest()
    settings = {"Env": [PATH_ENV, *env], "Entrypoint": list(entrypoint) or None, "WorkingDir": "/"}
    config = json.dumps(
        {
            "os": "linux",
            "architecture": ARCH.get(platform.machine(), platform.machine()),
            "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_id}"]},
        }
    ).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    index = [{"Config": config_name, "RepoTags": [name], "Layers": [f"{layer_id}.tar"]}]
    members = {
        config_name: config,
        f"{layer_id}.tar": layer,
        "manifest.json": json.dumps(index).encode(),
    }
    with tarfile.open(out, "w") as tar:
        for member, data in members.items():
            info = tarfile.TarInfo(member)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

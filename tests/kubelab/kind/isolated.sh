#!/bin/sh
# SPDX-License-Identifier: MIT
# isolated.sh DIR COMMAND...: the command beside a docker daemon of its own, both in namespaces of their own (network, mounts, processes):
# nothing of it is seen outside, and nothing stays when the command ends, but DIR (the images) and empty cgroups. Of one that is killed the containers stay in DIR, until the next.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"; dir=$(cd "$1" && pwd -P); shift
exec unshare --net --mount --pid --fork --mount-proc --kill-child --propagation private sh -euc '
  here=$1 dir=$2; shift 2
  mount -t tmpfs -o mode=755 tmpfs /run
  ip link set lo up
  rm -rf "$dir/exec" "$dir/docker.pid"          # left by one that was killed
  "$here/dockerd.sh" start "$dir"
  export DOCKER_HOST=unix://$dir/docker.sock
  remove_containers() { docker ps -aq | xargs -r docker rm -f -v > /dev/null; }
  remove_containers                             # their names are taken otherwise
  rc=0; "$@" || rc=$?
  remove_containers
  "$here/dockerd.sh" stop "$dir"
  exit $rc' sh "$here" "$dir" "$@"

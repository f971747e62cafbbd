#!/bin/sh
# SPDX-License-Identifier: MIT
# dockerd.sh start|stop DIR: a docker daemon of one's own, its data, socket and log in DIR.  export DOCKER_HOST=unix://DIR/docker.sock
# stop leaves neither bridges nor iptables rules behind (it flushes what the daemon made: run it on a machine with no other docker).
set -eu
here=$(cd "$(dirname "$0")" && pwd) dir=$2
case $1 in
  start)
    mkdir -p "$dir"
    sysctl net.ipv4.ip_forward > "$dir/sysctl.before"
    iptables -S FORWARD | head -1 > "$dir/forward.before"
    setsid dockerd -H "unix://$dir/docker.sock" --data-root "$dir/data" --exec-root "$dir/exec" -p "$dir/docker.pid" \
      --add-runtime "trim=$here/runc-trim" --default-runtime trim > "$dir/dockerd.log" 2>&1 < /dev/null &
    for i in $(seq 3000); do
      docker -H "unix://$dir/docker.sock" version > /dev/null 2>&1 && exit 0
      kill -0 $! 2> /dev/null || break
      sleep 0.2
    done
    tail "$dir/dockerd.log"; exit 1 ;;
  stop)
    bridges=$(docker -H "unix://$dir/docker.sock" network ls -f driver=bridge --format '{{.Name}} {{.ID}}' | sed 's/^bridge .*/docker0/; s/.* /br-/')
    pid=$(cat "$dir/docker.pid")
    kill "$pid"
    while kill -0 "$pid" 2> /dev/null; do sleep 0.1; done
    for b in $bridges; do ip link del "$b" 2> /dev/null || true; done
    for t in iptables ip6tables; do
      for table in filter nat; do                          # rules that name the daemon's chains or bridges, then its chains
        ${t}-save -t $table 2> /dev/null | grep -v '^[*:#]' | grep -E -e '-(A DOCKER|j DOCKER)|docker0|br-[0-9a-f]{12}' | sed "s/^-A /$t -w -t $table -D /" | sh 2> /dev/null || true
        for c in $(${t}-save -t $table 2> /dev/null | sed -n 's/^:\(DOCKER[^ ]*\).*/\1/p'); do $t -w -t $table -F "$c"; $t -w -t $table -X "$c" 2> /dev/null || true; done
        for c in $(${t}-save -t $table 2> /dev/null | sed -n 's/^:\(DOCKER[^ ]*\).*/\1/p'); do $t -w -t $table -X "$c"; done
      done
    done
    iptables -w $(cat "$dir/forward.before")
    sysctl -q -w "$(sed 's/ = /=/' "$dir/sysctl.before")"
    find /sys/fs/cgroup -depth -type d -path '/sys/fs/cgroup/*/docker*' -exec rmdir {} + 2> /dev/null || true ;;
esac

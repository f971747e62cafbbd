#!/bin/sh
# SPDX-License-Identifier: MIT
# The kubelet sets these machine-wide values if they differ: a node gets private files instead, so that the machine's own stay as they are.
mkdir -p /run/private-sysctls
while read -r f v; do
  [ "$(cat /proc/sys/$f)" = "$v" ] && continue
  g=/run/private-sysctls/$(echo $f | tr / .)
  echo "$v" > $g
  mount --bind $g /proc/sys/$f
done <<E
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
E

#!/bin/sh
# SPDX-License-Identifier: MIT
# Starts the lead's broker, in the container of a Job or of a MiniCluster.
set -eu
umask 077
own=/mnt/flux/burst
# The lead's KVS, with the jobs and the daemon's records: on a volume that outlives the
# pod.
state=/var/lib/burst/state
mkdir -p $own/run $state
# A broker refuses a certificate that others can read, and a Secret's files belong to
# root and, with fsGroup, to a group. The daemon's container reads this copy too.
cp /etc/burst/curve/curve.cert $own/curve.cert
chmod 0600 $own/curve.cert
# The default quorum is all ranks of the hosts list, most of which join only in a burst.
# rc2_none: the broker runs no initial program.
exec flux broker --config-path=/etc/burst/lead/broker.toml \
    -Shostname="lead-${JOB_COMPLETION_INDEX:-0}" \
    -Sbroker.quorum=1 -Sbroker.rc2_none=1 \
    -Sstatedir=$state -Srundir=$own/run -Slocal-uri=local://$own/run/local

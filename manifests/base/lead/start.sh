#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the lead's broker, in the container of a Job or of a MiniCluster.
#
# Exit status: that of the broker, so 0 after `flux shutdown`, which completes the Job.
# After a SIGTERM it is 143, whatever the broker's: a pod that is deleted or evicted ends
# with one. The broker then ends in order with status 0 too, and if that were the
# container's, the Job would be complete and no pod would follow.
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

broker=
terminated=
terminate() {
    terminated=yes
    # It may not have been started yet.
    [ -n "$broker" ] || return 0
    # A further signal would end the broker's rc3 half-way.
    trap '' TERM
    # It may have ended just now.
    kill -TERM "$broker" 2>/dev/null || :
}
trap terminate TERM

# The default quorum is all ranks of the hosts list, most of which join only in a burst.
# rc2_none: the broker runs no initial program.
flux broker --config-path=/etc/burst/lead/broker.toml \
    -Shostname="lead-${JOB_COMPLETION_INDEX:-0}" \
    -Sbroker.quorum=1 -Sbroker.rc2_none=1 \
    -Sstatedir=$state -Srundir=$own/run -Slocal-uri=local://$own/run/local &
broker=$!
[ -z "$terminated" ] || terminate
status=0
wait "$broker" || status=$?
# SIGTERM ends `wait`, and the broker only once it has shut down.
while kill -0 "$broker" 2>/dev/null; do wait "$broker" || :; done
[ -z "$terminated" ] || exit 143
exit "$status"

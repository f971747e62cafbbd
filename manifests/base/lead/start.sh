#!/bin/sh
# SPDX-License-Identifier: MIT
# Starts the lead's broker, in a Job's container as in a MiniCluster's.
set -eu
umask 077
own=/mnt/flux/burst
mkdir -p $own/run $own/state
# A broker refuses a certificate that others can read, and a Secret's files belong to
# root and, with fsGroup, to a group. The daemon's container reads this copy too.
cp /etc/burst/curve/curve.cert $own/curve.cert
chmod 0600 $own/curve.cert
# By default the quorum is the size, which counts hosts that join only in a burst.
# rc2_none: serve, run no initial program.
exec flux broker --config-path=/etc/burst/lead/broker.toml \
    -Shostname="lead-${JOB_COMPLETION_INDEX:-0}" \
    -Sbroker.quorum=1 -Sbroker.rc2_none=1 \
    -Sstatedir=$own/state -Srundir=$own/run -Slocal-uri=local://$own/run/local

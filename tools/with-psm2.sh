#!/usr/bin/env bash
# Runs a command where libfabric's provider psm2 finds a card, on a machine that has none.
#
#   tools/with-psm2.sh COMMAND [ARGUMENT...]
#
# The provider looks for /dev/hfi1_0 and for a unit with free contexts in /sys; a mount namespace of its own shows it
# both. PSM2_DEVICES=self,shm lets libpsm2 talk through shared memory. So the processes of this machine run the real
# code of the provider and of libpsm2 (endpoints, matching, active messages), but not the card's driver.
# Needs root, and Debian's libfabric1 and libpsm2-2.
set -euo pipefail

if [ $# -eq 0 ]; then
    echo "usage: $0 COMMAND [ARGUMENT...]" >&2
    exit 2
fi
if [ "${WITH_PSM2_INSIDE:-}" != 1 ]; then
    exec unshare --mount --propagation private env WITH_PSM2_INSIDE=1 "$0" "$@"
fi
unset WITH_PSM2_INSIDE

mount -t tmpfs none /sys/class
unit=/sys/class/infiniband/hfi1_0
mkdir -p "$unit/ports/1" "$unit/device"
echo '4: ACTIVE' >"$unit/ports/1/state"
echo 160 >"$unit/nctxts"
echo 160 >"$unit/nfreectxts"
echo 0 >"$unit/device/numa_node"

# A /dev that has what the old one has, and the card.
new=$(mktemp -d)
mount -t tmpfs -o mode=755 none "$new"
for entry in /dev/*; do
    name=$new/${entry##*/}
    if [ -L "$entry" ]; then
        cp -P "$entry" "$name"
    elif [ -d "$entry" ]; then
        mkdir "$name"
        mount --rbind "$entry" "$name"
    else
        touch "$name"
        mount --bind "$entry" "$name"
    fi
done
touch "$new/hfi1_0"
mount --move "$new" /dev
rmdir "$new"

export PSM2_DEVICES=self,shm
exec "$@"

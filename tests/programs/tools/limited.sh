#!/usr/bin/env bash
# Runs a command in a control group with a limit, as a container has one; as root, with version 1 or 2.
#   limited.sh cpu|memory|pids LIMIT COMMAND...      cpu: microseconds of each 100,000; memory: bytes
set -eu
controller=$1 limit=$2
shift 2
top=/sys/fs/cgroup
if [ -e $top/cgroup.controllers ]; then
    echo "+$controller" >$top/cgroup.subtree_control
    group=$top/cohort-test-$$
    mkdir "$group"
    echo "$limit" >"$group/$controller.max"
    # A limit of memory that swapping avoids would be none.
    [ "$controller" != memory ] || echo 0 >"$group/memory.swap.max" || true
else
    group=$top/$controller/cohort-test-$$
    mkdir "$group"
    case $controller in
        cpu) echo 100000 >"$group/cpu.cfs_period_us" && echo "$limit" >"$group/cpu.cfs_quota_us" ;;
        memory) echo "$limit" >"$group/memory.limit_in_bytes" ;;
        pids) echo "$limit" >"$group/pids.max" ;;
    esac
fi
status=0
(echo "$BASHPID" >"$group/cgroup.procs" && exec "$@") || status=$?
for _ in $(seq 100); do
    rmdir "$group" 2>/dev/null && break
    sleep 0.1
done
exit "$status"

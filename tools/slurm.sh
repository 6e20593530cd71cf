#!/usr/bin/env bash
# A cluster of Slurm on this host, for tests: munged, slurmctld and two slurmd, whose nodes are called a and b.
#
#   tools/slurm.sh start FOLDER    starts the daemons; their files are in FOLDER
#   tools/slurm.sh stop FOLDER     stops them and removes the folder
#
# Then SLURM_CONF=FOLDER/slurm.conf srun -N 2 ... runs jobs. Nobody else's Slurm or munge is touched: ports, sockets
# and key are the cluster's own. Jobs run as whoever has started it.
set -euo pipefail
PATH=$PATH:/usr/sbin

fail() { printf 'slurm: %s\n' "$*" >&2; exit 1; }

# How long the daemons may take, in tenths of a second.
patience=300

# Four consecutive ports that nobody listens at.
ports() {
    python3 - <<'PYTHON'
import random, socket, sys
for _ in range(1000):
    first = random.randrange(20000, 30000)
    try:
        for port in range(first, first + 4):
            with socket.socket() as probe:
                probe.bind(("", port))
    except OSError:
        continue
    print(first)
    sys.exit()
sys.exit("no free ports")
PYTHON
}

configuration() {
    local folder=$1 port=$2 host
    host=$(hostname -s)
    cat <<CONFIGURATION
ClusterName=cohort
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
TmpFS=$folder/tmp-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
PluginDir=$(plugins)
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
KillWait=2
MinJobAge=60
NodeName=a NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=16
NodeName=b NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=16
PartitionName=test Nodes=a,b Default=YES OverSubscribe=YES:8 MaxTime=60 State=UP
CONFIGURATION
}

plugins() {
    dirname "$(find /usr/lib -name auth_munge.so -path '*slurm*' -print -quit)"
}

start() {
    local folder=$1 program tries
    for program in munged slurmctld slurmd sinfo; do
        command -v $program >/dev/null || fail "$program is missing: run tools/cache.sh slurm"
    done
    mkdir -p "$folder"/{state,spool-a,spool-b,tmp-a,tmp-b}
    folder=$(CDPATH='' cd -- "$folder" && pwd -P)
    head -c 1024 /dev/urandom >"$folder/munge.key"
    chmod 600 "$folder/munge.key"
    munged --force --num-threads=2 --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
        --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
    configuration "$folder" "$(ports)" >"$folder/slurm.conf"
    export SLURM_CONF=$folder/slurm.conf
    slurmctld -c
    slurmd -N a
    slurmd -N b
    for ((tries = 0; tries < patience; tries++)); do
        [ "$(sinfo -h -t idle -o %D 2>/dev/null)" != 2 ] || return 0
        sleep 0.1
    done
    tail -n 20 "$folder"/*.log >&2
    sinfo >&2 || true
    stop "$folder"
    fail "the nodes do not come up"
}

stop() {
    local folder=$1 file pid
    for file in "$folder"/slurmd-a.pid "$folder"/slurmd-b.pid "$folder"/slurmctld.pid "$folder"/munged.pid; do
        pid=$(cat "$file" 2>/dev/null) || continue
        kill "$pid" 2>/dev/null || continue
        timeout 20 tail --pid="$pid" -f /dev/null || kill -KILL "$pid" 2>/dev/null || true
    done
    rm -rf "$folder"
}

[ $# = 2 ] || fail "usage: tools/slurm.sh start|stop FOLDER"
case $1 in
start) start "$2" ;;
stop) stop "$2" ;;
*) fail "usage: tools/slurm.sh start|stop FOLDER" ;;
esac

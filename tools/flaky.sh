#!/usr/bin/env bash
# Repeats trials of the runner beside busy loops: tools/flaky.sh TARGET_DIR RUNS FILTER
# Prints each trial that failed and how often; the output of such runs is kept in TARGET_DIR/flaky.
set -euo pipefail
target=$1 runs=$2 filter=$3
cd "$(dirname "${BASH_SOURCE[0]}")/.."
logs=$target/flaky
rm -rf "$logs"
mkdir -p "$logs"
cargo test -p cohort-tests --test runner --no-run

busy=()
for _ in $(seq "$(nproc)"); do
    (while :; do :; done) &
    busy+=($!)
done
trap 'kill "${busy[@]}" 2>/dev/null' EXIT

for run in $(seq "$runs"); do
    log=$logs/$run
    if cargo test -q -p cohort-tests --test runner -- "$filter" >"$log" 2>&1; then
        # The number of trials must not be zero: a filter that fits none proves nothing.
        grep -q '^test result: ok. [1-9]' "$log" || { echo "no trial has $filter in its name"; exit 2; }
        rm "$log"
    else
        echo "run $run of $runs failed: $log"
    fi
done

if [ -z "$(ls "$logs")" ]; then
    echo "$runs runs of $filter: none failed"
    exit 0
fi
sed -n 's/^test \(.*[^ ]\) *\.\.\. FAILED$/\1/p' "$logs"/* | sort | uniq -c | sort -rn
exit 1

#!/usr/bin/env bash
# Fuzzes what reads bytes from outside, guided by coverage, for SECONDS in all: tools/fuzz.sh TARGET_DIR SECONDS
# The instrumentation is LLVM's own, which the stable compiler has too; libFuzzer comes with libfuzzer-sys.
# Finds are kept in TARGET_DIR/fuzz/NAME/finds, and so is the corpus.
set -euo pipefail
target=$1 seconds=$2
cd "$(dirname "${BASH_SOURCE[0]}")/../fuzz"
triple=$(rustc -vV | sed -n 's/^host: //p')
passes=(
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
)
# With a triple, build scripts are left alone.
RUSTFLAGS="${passes[*]}" cargo build --release --locked --target "$triple" --target-dir "$target/fuzz"

# What a fuzzer begins with: valid input, into the folder $2.
seed() {
    case $1 in
    control)
        # A head: magic, version 1, kind 2, no body.
        printf 'chrt\1\0\2\0\0\0\0\0' >"$2/request"
        printf 'command\t./a b\\tc\npid\t17\n' >"$2/record"
        ;;
    elf)
        # The heads of a small executable and of a small library hold all that is read.
        local source='int main(void) { return 0; }'
        cc -x c -s -Wl,-z,noseparate-code -o "$2/executable" - <<<"$source"
        cc -x c -s -shared -fPIC -Wl,-z,noseparate-code -o "$2/library" - <<<"$source"
        ;;
    manager)
        printf 'cmd=%s\n' 'response_to_init pmi_version=1 pmi_subversion=1 rc=0' \
            'maxes kvsname_max=256 keylen_max=64 vallen_max=1024' 'my_kvsname kvsname=kvs_1' \
            'put_result rc=0 msg=success' barrier_out 'get_result rc=0 msg=success value=1.0.AAAA' \
            'appnum appnum=0' finalize_ack >"$2/pmi1"
        local answer
        printf 'cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n' >"$2/pmi2"
        for answer in 'fullinit-response;rank=1;size=3;appnum=0;rc=0;' 'kvs-put-response;rc=0;' \
            'kvs-fence-response;rc=0;' 'kvs-get-response;found=TRUE;value=AAAA;rc=0;'; do
            printf '%6dcmd=%s' $((4 + ${#answer})) "$answer" >>"$2/pmi2"
        done
        ;;
    server)
        # The first letter of a line is that of the client.
        printf '%s\n' '0cmd=init pmi_version=1 pmi_subversion=1' '0cmd=get_maxes' '1cmd=get_my_kvsname' \
            '0cmd=put key=a value=b' '1cmd=barrier_in' '0cmd=barrier_in' '0cmd=get key=a' '0cmd=abort exitcode=3' \
            '1cmd=finalize' >"$2/pmi1"
        ;;
    settings)
        printf '%s\0' COHORT_WAIT=park COHORT_EAGER_MAX=16K COHORT_NET_PORTS=1-2 COHORT_NET_RAILS=2 \
            COHORT_PROGRESS=steal COHORT_CHECK=members COHORT_DEBUG=gdb PATH=/bin >"$2/environment"
        ;;
    esac
}

names=(addresses control elf manager proof server settings)
share=$((1 + seconds / ${#names[@]}))
for name in "${names[@]}"; do
    folder=$target/fuzz/$name
    mkdir -p "$folder/corpus" "$folder/finds"
    seed "$name" "$folder/corpus"
    log=$folder/log
    if ! "$target/fuzz/$triple/release/$name" -max_total_time="$share" -max_len=65536 -timeout=10 \
        -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$folder/finds/" "$folder/corpus" >"$log" 2>&1; then
        tail -40 "$log"
        echo "fuzz/$name.rs fails on a file in $folder/finds"
        exit 1
    fi
    echo "$name: $(grep DONE "$log")"
done

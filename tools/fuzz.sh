#!/usr/bin/env bash
# Fuzzes what reads bytes from outside, guided by coverage, for SECONDS in all: tools/fuzz.sh TARGET_DIR SECONDS
# The instrumentation is LLVM's own, which the stable compiler has too; libFuzzer comes with libfuzzer-sys.
# Finds are kept in TARGET_DIR/fuzz/NAME/finds, and so is the corpus. fuzz/seeds/NAME is where each begins.
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

names=(addresses elf manager proof)
for name in "${names[@]}"; do
    folder=$target/fuzz/$name
    mkdir -p "$folder/corpus" "$folder/finds"
    [ ! -d "seeds/$name" ] || cp -n "seeds/$name"/* "$folder/corpus"
    if [ "$name" = elf ]; then
        # Small files that are valid to begin with: the heads of an executable and of a library hold all that is read.
        source='int main(void) { return 0; }'
        cc -x c -s -Wl,-z,noseparate-code -o "$folder/corpus/executable" - <<<"$source"
        cc -x c -s -shared -fPIC -Wl,-z,noseparate-code -o "$folder/corpus/library" - <<<"$source"
    fi
    log=$folder/log
    if ! "$target/fuzz/$triple/release/$name" -max_total_time="$((1 + seconds / ${#names[@]}))" -max_len=65536 -timeout=10 \
        -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$folder/finds/" "$folder/corpus" >"$log" 2>&1; then
        tail -40 "$log"
        echo "fuzz/$name.rs fails on a file in $folder/finds"
        exit 1
    fi
    echo "$name: $(grep DONE "$log")"
done

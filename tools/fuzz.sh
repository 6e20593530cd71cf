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

# What a fuzzer begins with: valid input, into the folder $2. The heads of a small executable and of a small library
# hold all that is read of ELF files.
seed() {
    if [ "$1" = elf ]; then
        cc -s -Wl,-z,noseparate-code -o "$2/executable" seeds/elf/main.c
        cc -s -shared -fPIC -Wl,-z,noseparate-code -o "$2/library" seeds/elf/main.c
    elif [ -d "seeds/$1" ]; then
        cp "seeds/$1"/* "$2"
    fi
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

#!/usr/bin/env bash
# Fuzzes the ELF parser, guided by coverage, for SECONDS: tools/fuzz.sh TARGET_DIR SECONDS
# The instrumentation is LLVM's own, which the stable compiler has too; libFuzzer comes with libfuzzer-sys.
# Finds are kept in TARGET_DIR/fuzz/finds, and so is the corpus.
set -euo pipefail
target=$1 seconds=$2
cd "$(dirname "${BASH_SOURCE[0]}")/../pip-loader/fuzz"
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

corpus=$target/fuzz/corpus finds=$target/fuzz/finds
mkdir -p "$corpus" "$finds"
# Small files that are valid to begin with: the heads of an executable and of a library hold all that is read.
printf 'int main(void) { return 0; }' | cc -x c -s -Wl,-z,noseparate-code -o "$corpus/executable" -
printf 'int main(void) { return 0; }' | cc -x c -s -shared -fPIC -Wl,-z,noseparate-code -o "$corpus/library" -
log=$target/fuzz/log
if ! "$target/fuzz/$triple/release/elf" -max_total_time="$seconds" -max_len=65536 -timeout=10 \
    -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$finds/" "$corpus" >"$log" 2>&1; then
    tail -40 "$log"
    echo "The parser fails on a file in $finds"
    exit 1
fi
grep -E 'INITED|DONE' "$log"

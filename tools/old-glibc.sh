#!/usr/bin/env bash
# Makes a folder with which programs are linked for an old C library, and prints it.
#
#   tools/old-glibc.sh 2.28 FOLDER
#
# A program asks for the versions of the C library's symbols that it was linked with, so what is linked here would not
# start on an older system. Zig (PyPI's ziglang) has lists of all versions' symbols. It makes libraries that have those
# of one version and no code, and the start-up files of that version; the compiler and linker stay the system's own.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: $0 VERSION FOLDER" >&2; exit 2; }
version=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd -P)
cache=${TEST_COHORT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cohort}
tools=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
if [ "$(cat "$folder/version" 2>/dev/null)" = "$version" ]; then
    echo "$folder"
    exit 0
fi
"$tools/cache.sh" zig >&2
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
echo 'int main(void) { return 0; }' >"$stage/main.c"
ZIG_GLOBAL_CACHE_DIR=$stage/cache ZIG_LOCAL_CACHE_DIR=$stage/cache "$cache/zig-venv/bin/python" -m ziglang cc \
    -target "x86_64-linux-gnu.$version" -pie -fPIE "$stage/main.c" -o "$stage/main" -lm -ldl -lpthread -lrt -lutil

for file in libc.so.6 Scrt1.o libc_nonshared.a; do
    made=$(find "$stage/cache" -name "$file" | head -n 1)
    [ -n "$made" ] || { echo "$0: zig makes no $file" >&2; exit 1; }
    cp "$made" "$folder/"
    [ "$file" != libc.so.6 ] || libraries=$(dirname "$made")
done
cp "$libraries/libld.so.2" "$folder/ld-linux-x86-64.so.2"
for file in libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1; do
    cp "$libraries/$file" "$folder/"
    ln -sf "$file" "$folder/${file%.so.*}.so"
done
# Until 2.34 some of the C library's functions were in libraries beside it.
echo "GROUP($folder/libc.so.6 $folder/libc_nonshared.a AS_NEEDED($folder/libdl.so.2 $folder/libpthread.so.0))" \
    >"$folder/libc.so"
echo "$version" >"$folder/version"
echo "$folder"

#!/usr/bin/env bash
# Runs a command where the packages of a folder (tools/packages.sh) lie over the system's, for it alone.
#
#   tools/with-packages.sh FOLDER COMMAND...
#
# A mount namespace of its own has overlays of /usr and /etc, which nobody can write. What a package's scripts would
# have done is done here once: the linker's list of libraries, and the links of Debian's alternatives that programs
# need.
set -euo pipefail

folder=$1
shift
[ "$(id -u)" = 0 ] || exec unshare -rm "$0" "$folder" "$@"
if [ "${WITH_PACKAGES:-}" != "$folder" ]; then
    export WITH_PACKAGES=$folder
    exec unshare -m "$0" "$folder" "$@"
fi
unset WITH_PACKAGES
libraries=usr/lib/$(uname -m)-linux-gnu
# Several may come at the same time, and one does what is done once.
exec 8>"$folder/lock"
flock 8

# alternative NAME FILE...: the first file that is there gets the name.
alternative() {
    local name=$1 file
    shift
    for file; do
        if [ -e "$folder/$file" ]; then
            mkdir -p "$(dirname "$folder/$name")"
            ln -sfn "/$file" "$folder/$name"
            return
        fi
    done
}

if [ "$(cat "$folder/linked" 2>/dev/null)" != "$(cksum <"$folder/packages")" ]; then
    for name in blas lapack; do
        alternative "$libraries/lib$name.so.3" "$libraries/openblas-pthread/lib$name.so.3" \
            "$libraries/$name/lib$name.so.3"
    done
    alternative "$libraries/libmpi.so" "$libraries/openmpi/lib/libmpi.so"
    alternative "$libraries/libopenblas.so.0" "$libraries/openblas-pthread/libopenblas.so.0"
    alternative etc/R/Renviron usr/lib/R/etc/Renviron.ucf
    alternative usr/lib/petsc usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real
    alternative usr/lib/slepc usr/lib/slepcdir/slepc3.18/x86_64-linux-gnu-real
fi
mount -t overlay -o "lowerdir=$folder/usr:/usr" overlay /usr
mount -t overlay -o "lowerdir=$folder/etc:/etc" overlay /etc
if [ "$(cat "$folder/linked" 2>/dev/null)" != "$(cksum <"$folder/packages")" ]; then
    ldconfig -C "$folder/etc/ld.so.cache"
    umount /etc
    mount -t overlay -o "lowerdir=$folder/etc:/etc" overlay /etc
    cksum <"$folder/packages" >"$folder/linked"
fi
exec 8>&-
exec "$@"

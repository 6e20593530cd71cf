#!/usr/bin/env bash
# Makes a package of what a build has made, and prints its path.
#
#   tools/package.sh wheel|deb|tarball BUILT OUT     for example wheel target/release target/packages
#
# BUILT may be of another architecture; then a pip-exec of this one, of the same version, is PIP_EXEC, and Debian's
# cross tools are there. Each holds what tools/install.sh installs. The wheel's and the .deb's demands on the C library
# are measured, not promised: a build on an older system (or by `make wheel`, which links for an old one) asks for less.
set -euo pipefail

fail() {
    echo "$0: $*" >&2
    exit 1
}

[ $# -eq 3 ] || fail "usage: $0 wheel|deb|tarball BUILT OUT"
kind=$1 built=$2
mkdir -p "$3"
out=$(cd "$3" && pwd -P)
tools=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
root=$(dirname "$tools")
cache=${TEST_COHORT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cohort}
machine=$(readelf -hW "$built/pip-exec" | sed -n 's/.*Machine: *//p')
case $machine in
    *X86-64*) machine=x86_64 architecture=amd64 ;;
    AArch64) machine=aarch64 architecture=arm64 ;;
    *) fail "$built/pip-exec is for '$machine': there are packages for x86-64 and 64-bit ARM" ;;
esac
if [ "$machine" != "$(uname -m)" ]; then
    cross=$machine-linux-gnu-
    export CC=${cross}gcc STRIP=${cross}strip
    [ -n "${PIP_EXEC:-}" ] || fail "$built is for $machine: PIP_EXEC is to name a pip-exec of this machine"
fi
export PIP_EXEC=${PIP_EXEC:-$built/pip-exec}
version=$("$PIP_EXEC" --version | sed -n '1s/.*) \([^,]*\),.*/\1/p')
summary="MPI runtime whose ranks share an address space"
# The same input makes the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022

# The tree as it is installed in the prefix $1, without the list that only tools/install.sh needs.
tree() {
    "$tools/install.sh" --strip "$built" "$1" "$stage/tree"
    rm "$stage/tree$1/lib/cohort/files"
}

tarball() {
    local name=cohort-$version file=$out/cohort-$version-linux-$machine.tar.gz
    tree "/$name"
    tar -C "$stage/tree" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        -cf - "$name" | gzip -9n >"$file"
    echo "$file"
}

# The newest version of the C library's symbols that a file below $1 asks for, as 2_34.
glibc() {
    find "$1" -type f -exec sh -c 'for file; do readelf -VW "$file" 2>/dev/null; done' sh {} + |
        sed -n 's/.*Name: GLIBC_\([0-9]*\)\.\([0-9]*\).*/\1_\2/p' | sort -t_ -k1n -k2n | tail -n 1
}

# A wheel holds no links. Of the names of the libraries in the folder $1, the one that programs ask for becomes the
# file; others that programs may ask for load that one; and those without a version are for the linker.
unlink_libraries() {
    local file target name
    for file in "$1"/lib*.so*; do
        [ -L "$file" ] || continue
        target=$(readlink -f "$file")
        replaced+=("$target")
        name=$(readelf -dW "$target" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
        rm "$file"
        case ${file##*/} in
            "$name") cp "$target" "$file" ;;
            *.so) echo "INPUT(-l:$name)" >"$file" ;;
            *)
                ${CC:-cc} -shared -nostdlib -o "$file" -Wl,-soname,"${file##*/}" -Wl,-rpath,'$ORIGIN',-z,nodelete \
                    -Wl,--no-as-needed "$target" -Wl,--build-id=none
                ${STRIP:-strip} "$file"
                ;;
        esac
    done
}

wheel() {
    local name=cohort_mpi-$version data scripts file replaced=()
    [ -x "$cache/wheel-venv/bin/wheel" ] || "$tools/cache.sh" wheel >&2
    tree /tree
    data=$stage/wheel/$name.data/data scripts=$stage/wheel/$name.data/scripts
    mkdir -p "$data" "$scripts" "$stage/packed" "$stage/wheel/$name.dist-info/licenses"
    mv "$stage"/tree/tree/{lib,include,share} "$data/"
    for file in "$stage"/tree/tree/bin/*; do
        case $(readlink "$file") in
            pip-exec)
                printf '#!/bin/sh\nself=$(readlink -f -- "$0")\nexec "${self%%/*}/pip-exec" "$@"\n' \
                    >"$scripts/${file##*/}"
                ;;
            *) cp -L "$file" "$scripts/" ;;
        esac
        chmod 755 "$scripts/${file##*/}"
    done
    # mpi4py and others look for an MPI in the environment's lib, whether pip-exec runs them or not.
    unlink_libraries "$data/lib/cohort/fortran"
    unlink_libraries "$data/lib/cohort/openmpi"
    unlink_libraries "$data/lib/cohort"
    rm -f "${replaced[@]}"
    cp "$data"/lib/cohort/libmpi{.so,.so.[0-9]*,_abi.so.1} "$data/lib/"
    cp "$root"/LICENSE-* "$stage/wheel/$name.dist-info/licenses/"
    cat >"$stage/wheel/$name.dist-info/WHEEL" <<WHEEL
Wheel-Version: 1.0
Generator: cohort ($version)
Root-Is-Purelib: false
Tag: py3-none-manylinux_$(glibc "$stage/wheel")_$machine
WHEEL
    {
        printf '%s\n' 'Metadata-Version: 2.4' 'Name: cohort-mpi' "Version: $version" "Summary: $summary" \
            'License-Expression: MIT OR Apache-2.0' 'License-File: LICENSE-APACHE' 'License-File: LICENSE-MIT' \
            'Project-URL: Source, https://github.com/cohort-mpi/cohort' 'Requires-Python: >=3.8' \
            'Description-Content-Type: text/markdown' ''
        cat "$root/README.md"
    } >"$stage/wheel/$name.dist-info/METADATA"
    "$cache/wheel-venv/bin/wheel" pack --dest-dir "$stage/packed" "$stage/wheel" >/dev/null
    mv "$stage"/packed/*.whl "$out/"
    ls "$out/$name"-py3-none-manylinux_*.whl
}

# The names that other MPIs have too are Debian's alternatives, of which ours is not the first choice: who installs the
# package keeps the mpicc that he has.
alternatives() {
    local name
    echo 'update-alternatives --install /usr/bin/mpirun mpirun /usr/bin/mpirun.cohort 30 \'
    echo '    --slave /usr/bin/mpiexec mpiexec /usr/bin/mpiexec.cohort \'
    echo '    --slave /usr/share/man/man1/mpirun.1.gz mpirun.1.gz /usr/share/man/man1/mpirun.cohort.1.gz \'
    echo '    --slave /usr/share/man/man1/mpiexec.1.gz mpiexec.1.gz /usr/share/man/man1/mpiexec.cohort.1.gz'
    printf 'update-alternatives --install /usr/bin/mpicc mpi /usr/bin/mpicc.cohort 30'
    for name in mpicxx mpic++ mpifort mpif77 mpif90; do
        printf ' \\\n    --slave /usr/bin/%s %s /usr/bin/%s.cohort' "$name" "$name" "$name"
    done
    for name in mpicc mpicxx mpic++ mpifort mpif77 mpif90; do
        printf ' \\\n    --slave /usr/share/man/man1/%s.1.gz %s.1.gz /usr/share/man/man1/%s.cohort.1.gz' \
            "$name" "$name" "$name"
    done
    echo
}

# Debian's places and names for what is elsewhere a plain tree below the prefix.
debian_names() {
    local file
    for file in "$stage"/tree/usr/bin/mpi*; do
        if [ -L "$file" ] && [ "$(readlink "$file")" != pip-exec ]; then
            ln -sf "$(readlink "$file").cohort" "$file"
        fi
        mv "$file" "$file.cohort"
    done
    for file in "$stage"/tree/usr/share/man/man1/mpi*.1; do
        sed -i 's|^\.so man1/mpicc\.1|.so man1/mpicc.cohort.1|' "$file"
        mv "$file" "${file%.1}.cohort.1"
    done
    gzip -9n "$stage"/tree/usr/share/man/man1/*
    gzip -9n "$stage/tree/usr/share/doc/cohort/CHANGELOG.md"
    mv "$stage/tree/usr/share/doc/cohort/CHANGELOG.md.gz" "$stage/tree/usr/share/doc/cohort/changelog.gz"
    mv "$stage/tree/usr/share/zsh/site-functions" "$stage/tree/usr/share/zsh/vendor-completions"
    rm "$stage"/tree/usr/share/bash-completion/completions/mpi* \
        "$stage"/tree/usr/share/fish/vendor_completions.d/mpi*
    {
        printf '%s\n' 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/' \
            'Source: https://github.com/cohort-mpi/cohort' '' 'Files: *' 'Copyright: The Cohort developers' \
            'License: Expat or Apache-2.0' ' The texts are LICENSE-MIT and LICENSE-APACHE in this folder.'
    } >"$stage/tree/usr/share/doc/cohort/copyright"
}

# The packages that the tree in the folder $1 needs.
depends() {
    local version
    if [ -n "${cross:-}" ]; then
        # The package manager here knows its own architecture's libraries, and ours need these two only.
        version=$(glibc "$1")
        echo "libc6 (>= ${version/_/.}), libgcc-s1"
        return
    fi
    command -v dpkg-shlibdeps >/dev/null || fail "dpkg-shlibdeps (package dpkg-dev) is missing"
    mkdir -p "$stage/depends/debian"
    echo 'Source: cohort' >"$stage/depends/debian/control"
    # Objects of these are loaded by one another only.
    (cd "$stage/depends" && dpkg-shlibdeps -O --ignore-missing-info -l"$1/usr/lib/cohort" \
        "$1"/usr/bin/pip-* "$1"/usr/lib/cohort/lib*.so 2>/dev/null) | sed -n 's/^shlibs:Depends=//p'
}

deb() {
    local tree=$stage/tree control=$stage/tree/DEBIAN file=$out/cohort_${version}_$architecture.deb depends
    tree /usr
    debian_names
    mkdir -p "$control"
    depends=$(depends "$tree")
    cat >"$control/control" <<CONTROL
Package: cohort
Version: $version
Architecture: $architecture
Maintainer: The Cohort developers <cohort@cohort-mpi.invalid>
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: $depends
Recommends: gcc | c-compiler, libc6-dev
Suggests: g++, gfortran, libfabric1
Section: net
Priority: optional
Homepage: https://github.com/cohort-mpi/cohort
Description: $summary
 Cohort runs MPI programs that are built for MPICH or for the MPI-5 ABI. The
 ranks of a node share one address space, and a rank that waits can make the
 communication of one that computes.
CONTROL
    { printf '#!/bin/sh\nset -e\n[ "$1" = configure ] || exit 0\n'; alternatives; } >"$control/postinst"
    cat >"$control/prerm" <<'PRERM'
#!/bin/sh
set -e
[ "$1" = remove ] || [ "$1" = deconfigure ] || exit 0
update-alternatives --remove mpirun /usr/bin/mpirun.cohort
update-alternatives --remove mpi /usr/bin/mpicc.cohort
PRERM
    chmod 755 "$control/postinst" "$control/prerm"
    (cd "$tree" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)
    dpkg-deb --root-owner-group -Zxz --build "$tree" "$file" >/dev/null
    echo "$file"
}

case $kind in
    wheel | deb | tarball) "$kind" ;;
    *) fail "no such package: $kind" ;;
esac

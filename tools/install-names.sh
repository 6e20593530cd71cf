#!/bin/sh
# Gives the files of a build the names under which programs look for them.
#
#   tools/install-names.sh TARGETDIR      for example target/release
#
# Makes links to the MPI libraries and to pip-exec, writes the headers and the compiler wrappers, and compiles the
# modules `mpi` and `mpi_f08` if gfortran is there (FC is another one, of a build for another architecture).
set -eu

if [ $# -ne 1 ] || [ ! -d "$1" ]; then
    echo "usage: $0 TARGETDIR" >&2
    exit 2
fi
target=$1
tools=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)

name() {
    if [ ! -e "$target/$1" ]; then
        echo "$0: $target/$1 is missing; build it first" >&2
        exit 1
    fi
    ln -sf "$1" "$target/$2"
}

name libmpi_mpich.so libmpi.so.12
name libmpi_mpich.so libmpi.so
name libmpi_mpich.so libmpich.so.12
name libmpi_mpi5.so libmpi_abi.so.1
name libmpi_mpi5.so libmpi_abi.so
name libmpi_openmpi.so libmpi.so.40

# A folder of its own: programs that need MPICH's Fortran library are not to find this one.
mkdir -p "$target/fortran"
for file in libmpifort_mpich.so libmpi_fortran_openmpi.so libmpi_cxx_openmpi.so; do
    if [ ! -e "$target/$file" ]; then
        echo "$0: $target/$file is missing; build it first" >&2
        exit 1
    fi
done
for file in libmpifort.so libmpifort.so.12 libmpichfort.so libmpichfort.so.12; do
    ln -sf ../libmpifort_mpich.so "$target/fortran/$file"
done
for file in libmpi_mpifh.so.40 libmpi_usempi_ignore_tkr.so.40 libmpi_usempif08.so.40; do
    ln -sf ../libmpi_fortran_openmpi.so "$target/fortran/$file"
done
# A folder of its own again: only for programs whose machine does not have Open MPI's.
mkdir -p "$target/openmpi"
for file in libmpi_cxx.so.40 libopen-pal.so.40 libopen-pal.so.80 libopen-rte.so.40; do
    ln -sf ../libmpi_cxx_openmpi.so "$target/openmpi/$file"
done

# What people type.
name pip-exec mpiexec
name pip-exec mpirun

if [ ! -x "$target/cohort-codegen" ]; then
    echo "$0: $target/cohort-codegen is missing; build it first" >&2
    exit 1
fi
rm -rf "$target/include"
mkdir "$target/include"
"$target/cohort-codegen" headers "$target/include"

wrapper() {
    # Not through a link that an earlier build may have left.
    rm -f "$target/$1"
    sed -e "s/@NAME@/$1/; s/@COMPILER@/$2/g; s/@OPTION@/$3/; s/@VARIABLE@/$4/" \
        -e "s|@ABI@|$5|; s|@LINKED@|$6|; s|@COMPILED@|$7|" \
        "$tools/compiler-wrapper.in" >"$target/$1"
    chmod 755 "$target/$1"
}

wrapper mpicc cc -cc MPICH_CC MPI-5 -lmpi_abi ''
wrapper mpicxx c++ -cxx MPICH_CXX MPI-5 -lmpi_abi ''
ln -sf mpicxx "$target/mpic++"

# With mpif.h a program may pass arguments of several types to one procedure, which gfortran 10 and later refuse.
mismatch=
FC=${FC:-gfortran}
if command -v "$FC" >/dev/null; then
    "$FC" -J"$target/include" -fsyntax-only "$target/include/mpi.f90"
    "$FC" -J"$target/include" -fsyntax-only "$target/include/mpi_f08.f90"
    [ "$("$FC" -dumpversion | cut -d. -f1)" -lt 10 ] || mismatch='-fallow-argument-mismatch'
fi
wrapper mpifort gfortran -fc MPICH_FC MPICH \
    '"-L$libraries/fortran" "-Wl,-rpath,$libraries/fortran" -lmpifort -lmpi' "$mismatch"
ln -sf mpifort "$target/mpif90"
ln -sf mpifort "$target/mpif77"

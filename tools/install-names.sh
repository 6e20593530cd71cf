#!/bin/sh
# Gives the files of a build the names under which programs look for them.
#
#   tools/install-names.sh TARGETDIR      for example target/release
#
# Makes links to the two MPI libraries and to pip-exec, and writes the compiler wrappers.
set -eu

if [ $# -ne 1 ] || [ ! -d "$1" ]; then
    echo "usage: $0 TARGETDIR" >&2
    exit 2
fi
target=$1
tools=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
include=$(dirname -- "$tools")/include

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

# What people type.
name pip-exec mpiexec
name pip-exec mpirun

rm -rf "$target/include"
mkdir "$target/include"
cp "$include/mpi.h" "$target/include/mpi.h"

wrapper() {
    # Not through a link that an earlier build may have left.
    rm -f "$target/$1"
    sed -e "s/@NAME@/$1/; s/@COMPILER@/$2/; s/@OPTION@/$3/; s/@VARIABLE@/$4/" \
        "$tools/compiler-wrapper.in" >"$target/$1"
    chmod 755 "$target/$1"
}

wrapper mpicc cc -cc MPICH_CC
wrapper mpicxx c++ -cxx MPICH_CXX
ln -sf mpicxx "$target/mpic++"

#!/bin/sh
# Installs what a build has made, or removes it.
#
#   tools/install.sh [--strip] BUILT PREFIX [DESTDIR]     for example target/release /usr/local
#   tools/install.sh --uninstall PREFIX [DESTDIR]
#
# The layout is that of every package (docs/install.md). All files find each other from where they are, so that the
# tree can be moved. The list of what was installed is lib/cohort/files. For a build of another architecture PIP_EXEC
# names a pip-exec of this one, and STRIP what strips.
set -eu
# Whoever installs, others may use it.
umask 022

fail() {
    echo "$0: $*" >&2
    exit 1
}

strip=no
uninstall=no
while :; do
    case ${1-} in
        --strip) strip=yes ;;
        --uninstall) uninstall=yes ;;
        *) break ;;
    esac
    shift
done

# Removes the files of the list, and folders that are empty then.
remove() {
    [ -e "$root/lib/cohort/files" ] || fail "nothing is installed in $root"
    while IFS= read -r file; do
        rm -f "$root/$file"
    done <"$root/lib/cohort/files"
    sed 's|/[^/]*$||' "$root/lib/cohort/files" | sort -ru >"$root/lib/cohort/folders"
    folders=$(cat "$root/lib/cohort/folders")
    rm "$root/lib/cohort/folders" "$root/lib/cohort/files"
    printf '%s\n' "$folders" | while IFS= read -r folder; do
        (cd "$root" && rmdir -p --ignore-fail-on-non-empty "$folder" 2>/dev/null) || :
    done
}

if [ "$uninstall" = yes ]; then
    [ $# -ge 1 ] || fail "usage: $0 --uninstall PREFIX [DESTDIR]"
    root=${2-}$1
    remove
    exit 0
fi
[ $# -ge 2 ] || fail "usage: $0 [--strip] BUILT PREFIX [DESTDIR]"
built=$1
root=${3-}$2
source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
[ -x "$built/mpicc" ] || fail "$built has no finished build; run \`make build\`"
case $2 in
*[:\;\$]*) fail "the dynamic linker cannot look for libraries in a folder with : ; or \$ in its name: $2" ;;
esac
case $root in /*) ;; *) fail "PREFIX is a path from the root: $root" ;; esac
# What another version installed and this one has not.
[ ! -e "$root/lib/cohort/files" ] || remove

mkdir -p "$root/lib/cohort"
files=$root/lib/cohort/files
: >"$files"

# Installs the file $1 as $2 below the prefix, with the mode $3; a link as the link that it is.
put() {
    mkdir -p "$root/$(dirname -- "$2")"
    # A program that is running cannot be written to, and a link is not to be followed.
    rm -f "$root/$2"
    if [ -L "$1" ]; then
        cp -P "$1" "$root/$2"
    else
        cp "$1" "$root/$2"
        chmod "$3" "$root/$2"
        case $2:$strip in bin/pip-*:yes | *.so:yes) "${STRIP:-strip}" --strip-debug "$root/$2" ;; esac
    fi
    printf '%s\n' "$2" >>"$files"
}

# Writes standard input to $1 below the prefix.
text() {
    mkdir -p "$root/$(dirname -- "$1")"
    rm -f "$root/$1"
    cat >"$root/$1"
    chmod 644 "$root/$1"
    printf '%s\n' "$1" >>"$files"
}

for file in "$built"/pip-exec "$built"/pip-python "$built"/pip-top "$built"/mpi*; do
    put "$file" "bin/${file##*/}" 755
done
for file in audit blocks join malloc network node; do
    put "$built/libcohort_$file.so" "lib/cohort/libcohort_$file.so" 644
    # What ranks execute that end.
    [ "$file" != audit ] || chmod 755 "$root/lib/cohort/libcohort_$file.so"
done
# The MPI libraries: their names are links, and what these lead to.
for folder in '' fortran/ openmpi/; do
    for file in "$built/$folder"lib*.so*; do
        [ -L "$file" ] || continue
        put "$file" "lib/cohort/$folder${file##*/}" 644
        target=$(readlink "$file")
        [ -e "$root/lib/cohort/${target##*/}" ] || put "$built/${target##*/}" "lib/cohort/${target##*/}" 644
    done
done
# Below, in folders, the modules of other Fortran compilers.
find "$built/include" -type f | while IFS= read -r file; do
    put "$file" "include/cohort/${file#"$built/include/"}" 644
done
put "$source/pip-loader/gdb/cohort-gdb.py" lib/cohort/cohort-gdb.py 644
put "$source/tools/trace-to-otf2.py" lib/cohort/trace-to-otf2.py 755
for file in README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT; do
    put "$source/$file" "share/doc/cohort/$file" 644
done

own=${PIP_EXEC:-$built/pip-exec}
version=$("$own" --version | sed -n '1s/.*) \([^,]*\),.*/\1/p')
[ -n "$version" ] || fail "$own does not say its version"
# mpi.h is that of the MPI-5 ABI, mpif.h and the module those of MPICH's.
for name in cohort:MPI-5 cohort-fortran:MPICH; do
    case $name in
        cohort:*) libraries=-lmpi_abi ;;
        *) libraries="-L\${libraries}/fortran -Wl,-rpath,\${libraries}/fortran -lmpifort -lmpi" ;;
    esac
    sed -e "s/@NAME@/${name%:*}/; s/@ABI@/${name#*:}/; s/@VERSION@/$version/; s|@LIBRARIES@|$libraries|" \
        "$source/tools/package/cohort.pc.in" | text "lib/pkgconfig/${name%:*}.pc"
done
sed "s/@VERSION@/$version/" "$source/tools/package/modulefile.in" | text "share/modulefiles/cohort/$version"

# Man pages and completion.
"$own" --man | text share/man/man1/pip-exec.1
sed "s/@VERSION@/$version/" "$source/tools/package/mpicc.1.in" | text share/man/man1/mpicc.1
for name in mpiexec:pip-exec mpirun:pip-exec mpicxx:mpicc mpic++:mpicc mpifort:mpicc mpif77:mpicc mpif90:mpicc; do
    echo ".so man1/${name#*:}.1" | text "share/man/man1/${name%:*}.1"
done
"$own" --completion zsh | text share/zsh/site-functions/_pip-exec
for name in pip-exec mpiexec mpirun; do
    "$own" --completion bash | text "share/bash-completion/completions/$name"
    "$own" --completion fish | text "share/fish/vendor_completions.d/$name.fish"
done

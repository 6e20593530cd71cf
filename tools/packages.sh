#!/usr/bin/env bash
# Unpacks Debian packages, with what they depend on and this system lacks, into a folder. Nothing is installed.
#
#   tools/packages.sh FOLDER PACKAGE...
#
# The folder has `usr` and `etc` as the packages have them, which tools/with-packages.sh lays over the system's. What is
# there already costs nothing, and packages that are asked for later are added. FOLDER/packages lists names and
# versions.
set -euo pipefail

folder=$1
shift
mkdir -p "$folder"/{usr,etc}
touch "$folder/packages"
missing=()
for package; do
    grep -q "^$package " "$folder/packages" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
command -v apt-get >/dev/null || { echo "packages: no apt-get here, and ${missing[*]} are needed" >&2; exit 1; }
if [ "$(id -u)" = 0 ] && ! apt-cache show "${missing[@]}" >/dev/null 2>&1; then apt-get update -qq; fi

# What the package manager would install here, as name=version.
wanted=$(apt-get install --simulate --no-install-recommends "${missing[@]}" |
    sed -nE 's/^Inst ([^ ]+) (\[[^]]*\] )?\(([^ ]+) .*/\1 \3/p')
staging=$(mktemp -d "$folder/staging.XXXXXX")
trap 'rm -rf "$staging"' EXIT
chmod 755 "$staging"
new=$(grep -vxFf "$folder/packages" <<<"$wanted" || true)
echo "packages: fetching $(wc -l <<<"$new") packages for ${missing[*]}" >&2
(cd "$staging" && awk 'NF { print $1 "=" $2 }' <<<"$new" |
    xargs -r -n 100 timeout 1500 apt-get download -qq 2>/dev/null)
for package in "$staging"/*.deb; do
    [ ! -e "$package" ] || dpkg -x "$package" "$staging/tree"
done
# Since files of the packages are found in both places, /lib is a part of /usr.
for part in lib lib64 bin sbin; do
    [ -d "$staging/tree/$part" ] || continue
    mkdir -p "$staging/tree/usr"
    cp -a "$staging/tree/$part" "$staging/tree/usr/"
done
rm -rf "$staging"/tree/usr/share/{doc,man,locale,info,lintian}
for part in usr etc; do
    [ ! -d "$staging/tree/$part" ] || cp -a "$staging/tree/$part/." "$folder/$part/"
done
printf '%s\n' "$new" | sed '/^$/d' >>"$folder/packages"
# A package that the system has installed is listed too, so that it is not looked for again.
for package in "${missing[@]}"; do
    grep -q "^$package " "$folder/packages" ||
        dpkg-query -W -f '${Package} ${Version}\n' "$package" >>"$folder/packages"
done

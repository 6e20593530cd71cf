#!/usr/bin/env bash
# How large the tree is: tools/sizes.sh
# Lines of Rust that hold code (no blanks, no comments), in products (with their tests in brackets) and in tests, and
# unsafe blocks. Tests are the folders and files of that name and what follows `#[cfg(test)] mod tests {`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
git ls-files '*.rs' | awk '
function is_test(path) { return path ~ /(^|\/)(tests|benches|fuzz)(\/|\.rs$)/ || path ~ /models\.rs$/ }
{
    path = $0; split(path, part, "/")
    folder = part[1] == "runtime" || part[1] == "fabric" ? part[1] "/" part[2] : part[1]
    inside = 0
    while ((getline line < path) > 0) {
        gsub(/^[ \t]+/, "", line)
        if (line ~ /^(\/\/|$)/) continue
        if (line ~ /^mod tests \{/ || line ~ /^mod models \{/) inside = 1
        if (is_test(path) || inside) tests[folder]++; else {
            code[folder]++
            if (line ~ /unsafe \{/) blocks++
        }
    }
    close(path)
}
END {
    for (folder in code) {
        printf "%7d (%6d)  %s\n", code[folder], tests[folder], folder | "sort -rn"
        all += code[folder]
    }
    for (folder in tests) checked += tests[folder]
    close("sort -rn")
    printf "%7d lines of products, %d of tests, %d unsafe blocks\n", all, checked, blocks
}'

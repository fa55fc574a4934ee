# Names and places that the scripts beside this file share; sourced by them.
# shellcheck shell=bash disable=SC2034
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

LINUX=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl)
WINDOWS=x86_64-pc-windows-gnu
MACOS=(aarch64-apple-darwin x86_64-apple-darwin)
DUMP=dumps/net10-wks-basics-heap.dmp.zst

name=gcdump
version="$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)"
# Of the last commit: the same sources make the same files, whenever they are built.
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}"
export SOURCE_DATE_EPOCH
# Not everyone's umask is that of packages.
umask 022

cargo_out="${CARGO_TARGET_DIR:-target}"
dist="$PWD/target/dist"   # what is published
work="$PWD/target/work"   # one folder per target: the binary, its symbols, its licence list
stage="$PWD/target/stage" # the tree that is being packed
mkdir -p "$dist" "$work"

say() { printf '== %s\n' "$*"; }
die() { printf '%s: %s\n' "$0" "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "no $1: run release/setup, or install the package $2"; }

exe() { case "$1" in *windows*) echo "$name.exe" ;; *) echo "$name" ;; esac; }

# Addresses of what is published.
# shellcheck source=/dev/null
. release/addresses

# GNU binutils for a target: objcopy, readelf, nm …
tool() {
    case "$1" in
        x86_64-unknown-linux-*) echo "$2" ;;
        aarch64-*) echo "aarch64-linux-gnu-$2" ;;
        *windows-gnu) echo "x86_64-w64-mingw32-$2" ;;
    esac
}

# What runs a target's binaries here: nothing for our own.
runner() {
    case "$1" in
        "$(uname -m)"-*-linux-*) ;;
        aarch64-*) command -v qemu-aarch64 || command -v qemu-aarch64-static || true ;;
        *windows*) command -v wine64 || command -v wine || true ;;
    esac
}

# The environment of Wine. Rust's library asks bcryptprimitives.dll for random numbers, which Wine 8 does not have: one of ours passes the question on.
wine_environment() {
    local dlls="$work/wine-dlls"
    export WINEPREFIX="$work/wine" WINEDEBUG=-all WINEDLLOVERRIDES="mscoree=;mshtml=" WINEPATH="Z:${dlls//\//\\}"
    mkdir -p "$dlls"
    x86_64-w64-mingw32-gcc -x c - -shared -o "$dlls/bcryptprimitives.dll" -ladvapi32 <<'C'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) { return SystemFunction036(bytes, (ULONG)count); }
C
}

# The targets that `release/build` has built.
built() {
    local target
    for target in "${LINUX[@]}" "$WINDOWS" "${MACOS[@]}"; do
        if [ -f "$work/$target/$(exe "$target")" ]; then echo "$target"; fi
    done
}

# tar.gz that depends on the contents only.
pack() { # archive folder member...
    local archive="$1" folder="$2"
    shift 2
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --directory "$folder" "$@" |
        gzip -9n >"$archive"
}

sums() { (cd "$dist" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS); }

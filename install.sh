#!/bin/sh
# Installs Longhaul for this user: the archive for this machine, checked, unpacked, without root.
#
#   curl -fsSL https://…/install.sh | sh -s -- --dir ./bin
set -eu

version=0.1.0
releases="${LONGHAUL_RELEASES:-}"
folder="${LONGHAUL_DIR:-$HOME/.local/bin}"
sum="${LONGHAUL_SHA256:-}"

usage() {
  cat <<TEXT
usage: install.sh [--releases URL] [--version VERSION] [--sha256 SUM] [--dir FOLDER]

  --releases URL      folder with the archives; \$LONGHAUL_RELEASES
  --version VERSION   version of Longhaul (default $version)
  --sha256 SUM        sum of the archive, instead of SHA256SUMS beside it; \$LONGHAUL_SHA256
  --dir FOLDER        folder for the programs (default ~/.local/bin); \$LONGHAUL_DIR
TEXT
}

stop() {
  echo "install.sh: $1" >&2
  exit "$2"
}

download() {
  curl -fsSL --retry 3 --connect-timeout 20 --max-time 600 --max-filesize 200000000 -o "$work/$1" "$releases/$1" ||
    stop "failed to download $releases/$1" 69
}

while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --releases | --version | --sha256 | --dir) [ $# -gt 1 ] || stop "$1 needs a value" 64 ;;
    *) usage >&2; exit 64 ;;
  esac
  case "$1" in
    --releases) releases="$2" ;;
    --version) version="${2#v}" ;;
    --sha256) sum="$2" ;;
    --dir) folder="$2" ;;
  esac
  shift 2
done
sum="${sum#sha256:}"

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64 | Linux-amd64) target=x86_64-unknown-linux-musl ;;
  Linux-aarch64 | Linux-arm64) target=aarch64-unknown-linux-musl ;;
  *) stop "there is no program for $(uname -s) on $(uname -m): Longhaul needs Linux on x86_64 or aarch64" 69 ;;
esac
[ -n "$releases" ] || stop "name the folder with the archives: --releases URL" 64
for program in curl tar sha256sum; do
  command -v "$program" > /dev/null || stop "needs $program" 69
done

name="longhaul-$version-$target"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

download "$name.tar.gz"
if [ -z "$sum" ]; then
  download SHA256SUMS
  sum="$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.gz\$/\1/p" "$work/SHA256SUMS")"
  [ -n "$sum" ] || stop "SHA256SUMS does not name $name.tar.gz" 65
fi
(cd "$work" && echo "$sum  $name.tar.gz" | sha256sum -c - > /dev/null 2>&1) ||
  stop "the sum of $name.tar.gz is not $sum: nothing was installed" 65

tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$folder"
installed=
for program in longhaul longhaul-service longhaul-seed; do
  [ -f "$work/$name/$program" ] || continue
  # Renamed as a whole: a running program keeps its file.
  cp "$work/$name/$program" "$folder/.$program-$$"
  chmod 755 "$folder/.$program-$$"
  mv "$folder/.$program-$$" "$folder/$program"
  installed="$installed $program"
done
[ -n "$installed" ] || stop "$name.tar.gz has no programs" 65
# For `kubectl longhaul`.
ln -sf longhaul "$folder/kubectl-longhaul"
echo "installed in $folder:$installed ($version)"
case ":$PATH:" in
  *":$folder:"*) ;;
  *) echo "add it to PATH: export PATH=\"$folder:\$PATH\"" ;;
esac

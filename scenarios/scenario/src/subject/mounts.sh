# Becomes a program that finds folders where a kubelet would mount them. Nobody else sees them: it runs in a mount namespace of its own.
# Targets whose first folder does not exist come first. Arguments: a scratch folder, how many folders, then TARGET and SOURCE of each, then the program and its words.
set -eu
# The tools of mounting are in /usr/sbin of some systems, which is not on every user's PATH.
own=${PATH-}
PATH="$own:/usr/sbin:/usr/bin:/sbin:/bin"
script=$0 scratch=$1 count=$2
shift 2

fail() {
  echo "longhaul: $1" >&2
  exit 126
}

# Makes a copy of the folder $1 in $new: every entry is the one that is there, and entries can be added.
copy() {
  new="$scratch/$count"
  mkdir -p "$new"
  mount -t tmpfs -o mode=0755 none "$new" || fail "no folder can be mounted in place of $1"
  for entry in "$1"/* "$1"/.[!.]*; do
    at="$new/${entry##*/}"
    if [ -L "$entry" ]; then
      cp -P "$entry" "$at"
    elif [ -d "$entry" ]; then
      mkdir "$at"
      # The folder with the copy in it would have the copy in it again. An entry may go meanwhile.
      case "$scratch/" in
        "$entry"/*) mount --rbind "$entry" "$at" && umount -l "$at${new#"$entry"}" ;;
        *) mount --rbind "$entry" "$at" || [ ! -e "$entry" ] ;;
      esac
    elif [ -e "$entry" ]; then
      : >"$at"
      mount --bind "$entry" "$at" || [ ! -e "$entry" ]
    fi
  done
}

above() {
  above=$1
  while [ ! -d "$above" ]; do above=$(dirname "$above"); done
  above=$(readlink -f "$above")
}

while [ "$count" -gt 0 ]; do
  target=$1 source=$2
  above "$target"
  case "$above" in
    "$target" | /tmp | /tmp/*) ;;
    /)
      # A root of its own, in which the rest is done.
      copy ""
      mkdir -p "$new$target"
      here=$PWD
      chroot=$(command -v chroot) || fail "chroot is not installed (coreutils)"
      PATH=$own
      exec "$chroot" "$new" /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$here" /bin/sh -c "$LONGHAUL_MOUNTS" "$script" "$scratch" "$count" "$@"
      ;;
    *)
      copy "$above"
      mount --rbind "$new" "$above" || fail "no folder can be mounted at $above"
      ;;
  esac
  mkdir -p "$target" || fail "the folder $target cannot be made"
  mount --rbind "$source" "$target" || fail "no folder can be mounted at $target"
  shift 2
  count=$((count - 1))
done
unset LONGHAUL_MOUNTS
PATH=$own
exec "$@"

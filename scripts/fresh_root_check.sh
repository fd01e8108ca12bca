#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves that the two commands of the README work where nothing was ever installed: makes a minimal
# Debian 12 in a temporary folder, clones this repository's last commit into it and runs both there.
# Needs root, git and debootstrap. Takes Debian's mirror and apt's settings from this machine.
#   scripts/fresh_root_check.sh [SCRIPT...]      default: scripts/quickstart.sh scripts/test.sh
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

scripts=("$@")
[ $# != 0 ] || scripts=(scripts/quickstart.sh scripts/test.sh)
for script in "${scripts[@]}"; do
  [ -x "$script" ] || { echo "error: this repository has no script $script" >&2; exit 2; }
done

[ "$(id -u)" = 0 ] || { echo "error: debootstrap and chroot need root" >&2; exit 1; }
install_missing debootstrap=debootstrap git=git


root=$(mktemp -d "${TMPDIR:-/tmp}/collx-fresh-root.XXXXXX")
chmod 755 "$root"  # apt drops privileges and must still get in
clean_up() {
  local mounted
  # The last first; some are the tests' own (ip netns).
  awk -v root="$root" '$2 == root || index($2, root "/") == 1 { print $2 }' /proc/mounts | tac |
    # What still runs there, where this is ended early, keeps it busy: it goes with the last of them.
    while read -r mounted; do umount "$mounted" 2>/dev/null || umount -l "$mounted" || true; done
  rm -rf --one-file-system "$root" "$root.log"
}
trap clean_up EXIT

# All addresses that apt is told of, in either of its two file formats.
addresses() {
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
    sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[.*\] \)\{0,1\}\([^ ]*\).*/\2/p'
}
# The first is Debian's.
mirror() { addresses | head -n 1; }

# Debian's installer and images have these updates, too; debootstrap leaves them out.
add_security_updates() {
  local from
  from=$(addresses | grep -m 1 debian-security) || from=http://deb.debian.org/debian-security
  echo "deb $from bookworm-security main" >"$root/etc/apt/sources.list.d/security.list"
}

# This machine's settings of the network (a proxy, say), not its hooks.
take_apt_settings() {
  local file
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
    [ ! -f "$file" ] || ! grep -q '^ *Acquire::' "$file" || cp "$file" "$root/etc/apt/apt.conf.d/"
  done
}

say "a minimal Debian 12 in $root"
began=$SECONDS
debootstrap --variant=minbase bookworm "$root" "$(mirror)" >"$root.log" 2>&1 ||
  { tail -n 20 "$root.log"; rm -f "$root.log"; exit 1; }
rm -f "$root.log"
take_apt_settings
add_security_updates
# A mount point, as a machine's root is: without, tests between network namespaces skip themselves.
mount --bind "$root" "$root"
mount -t proc none "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs none "$root/dev/shm"
mount -t sysfs none "$root/sys"
[ -s "$root/etc/hosts" ] || printf '127.0.0.1 localhost\n::1 localhost ip6-localhost\n' >"$root/etc/hosts"
git clone --quiet . "$root/srv/collx"
echo "made in $((SECONDS - began)) s, $(chroot "$root" dpkg-query -f '.\n' -W | wc -l) packages"

failed=0
for script in "${scripts[@]}"; do
  say "fresh root: $script"
  began=$SECONDS outcome=passed
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb "/srv/collx/$script" ||
    { outcome=FAILED; failed=1; }
  say "fresh root: $script $outcome in $((SECONDS - began)) s"
done

left=$(ls "$root/dev/shm")
[ -z "$left" ] || { echo "left behind in /dev/shm: $left"; failed=1; }
exit $failed

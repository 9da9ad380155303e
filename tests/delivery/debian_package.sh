#!/usr/bin/env bash
# Installs the Debian packages of a folder into a bare Debian 12 that it makes,
# runs a job there, builds a C++ program with them, and removes them without a
# trace.
#   debian_package.sh FOLDER      as root; needs mmdebstrap
set -euo pipefail
folder=$(realpath "$1")
source=$(cd "$(dirname "$0")/../.." && pwd)
if [ "$(id -u)" != 0 ] || ! command -v mmdebstrap > /dev/null; then
  echo "the Debian packages are not tried: that needs root and mmdebstrap"
  exit 77
fi
work=$(mktemp -d)
root=$work/root
# shellcheck disable=SC2329  # called by the trap
remove() {
  ! mountpoint -q "$root/proc" || umount "$root/proc"
  rm -rf --one-file-system "$work"
}
trap remove EXIT

say() { printf '== %s\n' "$*"; }
inside() { chroot "$root" env -i PATH="$PATH" HOME=/tmp LC_ALL=C.UTF-8 "$@"; }
quietly() { "$@" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
files() { inside find / -xdev -path /proc -prune -o -path /tmp -prune -o \
  -path /var/lib/apt -prune -o -path /var/cache -prune -o \
  -path /var/log -prune -o -path /var/lib/dpkg -prune -o -print | sort; }

say "making a bare Debian 12"
quietly mmdebstrap --variant=apt --include=ca-certificates bookworm "$root"
# A program finds its libraries beside itself by /proc/self/exe.
mount --bind /proc "$root/proc"
cp "$folder"/*.deb "$root/tmp/"

say "installing penstock"
quietly inside apt-get update -qq
# What it depends on comes first, so that only it is compared.
depends=$(dpkg-deb -f "$folder"/penstock_*.deb Depends |
  sed 's/([^)]*)//g; s/|[^,]*//g; s/,/ /g')
# shellcheck disable=SC2086
quietly inside apt-get install -y -qq --no-install-recommends $depends
files > "$work/before"
quietly inside sh -c 'apt-get install -y -qq /tmp/penstock_*.deb'
inside penstock --version
inside penstock doctor --parts
inside test -e /usr/share/man/man1/penstock-train.1.gz

say "a job"
inside sh -ec 'cd /tmp
  penstock demo positions --rows 600 --seed 1 --to sqlite:p.sqlite
  cat > job.json <<END
{"source": "sqlite:p.sqlite#measurements", "fields": {"x": ["tx_lat", "tx_lon"]},
 "loader": {"batch_size": 64}, "device": "cpu", "model": "none",
 "train": {"epochs": 2}}
END
  penstock train job.json | tail -3
  penstock explain runs/latest | head -3'

say "removing it"
quietly inside apt-get purge -y -qq penstock
files > "$work/after"
diff "$work/before" "$work/after" ||
  { echo "files were left or lost: see above"; exit 1; }

say "C++ with libpenstock-dev"
quietly inside sh -c 'apt-get install -y -qq --no-install-recommends \
  /tmp/*.deb g++ cmake make'
cp -r "$source/examples/cpp_loop" "$root/tmp/"
mkdir -p "$root/tmp/positions"
cp "$source/examples/positions/job.json" "$root/tmp/positions/"
quietly inside cmake -S /tmp/cpp_loop -B /tmp/build
quietly inside cmake --build /tmp/build
inside sh -ec 'cd /tmp
  build/cpp_loop positions/job.json source.path=p.sqlite device=cpu \
    loader.batch_size=64 train.epochs=2 | tail -1'
say "the Debian packages passed"

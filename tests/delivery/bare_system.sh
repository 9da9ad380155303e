#!/usr/bin/env bash
# Installs a wheel on a bare system that it makes, without a compiler, and runs
# the blocks of the README and of the five-minute tutorial there as they stand.
#   bare_system.sh SUITE WHEEL [CUDA [TORCH]]     as root; needs mmdebstrap
# SUITE is bookworm (Debian 12) or jammy (Ubuntu 22.04). pip installs torch with
# its CUDA packages, 4 GB, unless CUDA names a folder nvidia/ that holds these,
# and TORCH a folder with torch 2.11 for the Python of that system.
set -euo pipefail
suite=$1 wheel=$(realpath "$2") cuda=${3:-} torch=${4:-}
source=$(cd "$(dirname "$0")/../.." && pwd)
if [ "$(id -u)" != 0 ] || ! command -v mmdebstrap > /dev/null; then
  echo "no bare system is tried: that needs root and mmdebstrap"
  exit 77
fi
work=$(mktemp -d)
root=$work/root
mounts=()
# shellcheck disable=SC2329  # called by the trap
remove() {
  local mount
  for mount in "${mounts[@]}"; do umount "$mount"; done
  rm -rf --one-file-system "$work"
}
trap remove EXIT

say() { printf '== %s\n' "$*"; }
inside() {
  chroot "$root" env -i PATH=/opt/penstock/bin:/usr/bin:/bin HOME=/root \
    LC_ALL=C.UTF-8 PIP_DISABLE_PIP_VERSION_CHECK=1 "$@"
}
quietly() { "$@" > "$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }; }
bind() {  # WHAT PLACE
  mkdir -p "$root$2"
  mount --bind "$1" "$root$2"
  mounts=("$root$2" "${mounts[@]}")
}

# Debian has no package with Ubuntu's key: it comes out of Ubuntu's own, whose
# bytes are known.
ubuntu() {
  local hash=0d0e7ed6b112f5d03eabf3c7eb01ebdacf9c57714b279e90495cfc58c8c4520f
  local from=http://archive.ubuntu.com/ubuntu
  quietly curl -fsS -o "$work/keyring.deb" \
    $from/pool/main/u/ubuntu-keyring/ubuntu-keyring_2021.03.26_all.deb
  echo "$hash  $work/keyring.deb" | sha256sum --check --quiet
  dpkg-deb -x "$work/keyring.deb" "$work/keyring"
  local keys=$work/keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg
  chmod 755 "$work"
  quietly mmdebstrap --variant=apt --keyring="$keys" \
    --include=ca-certificates,python3,python3-venv jammy "$root" \
    "deb [signed-by=$keys] $from jammy main universe"
}

say "making a bare $suite"
if [ "$suite" = jammy ]; then
  ubuntu
else
  quietly mmdebstrap --variant=apt \
    --include=ca-certificates,python3,python3-venv "$suite" "$root"
fi
bind /proc /proc
for file in resolv.conf hosts ssl/certs/ca-certificates.crt; do
  cp -L "/etc/$file" "$root/etc/$file"
done
if inside sh -c 'command -v c++ g++ gcc cc clang'; then
  echo "this system has a compiler"
  exit 1
fi

say "installing the wheel, pyarrow and torch"
cp "$wheel" "$root/tmp/"
quietly inside python3 -m venv /opt/penstock
quietly inside sh -c 'pip install --no-cache-dir /tmp/*.whl "pyarrow>=24,<27"'
without=()
if [ -n "$cuda" ]; then
  without=(--no-deps)
  bind "$cuda" /opt/cuda/nvidia
  inside sh -c 'ls -d /opt/cuda/nvidia/*/lib > /etc/ld.so.conf.d/cuda.conf
    /sbin/ldconfig'
fi
if [ -n "$torch" ]; then
  bind "$torch" /opt/torch
  # shellcheck disable=SC2016
  inside sh -c 'echo /opt/torch > "$(python -c "import site
print(site.getsitepackages()[0])")/torch.pth"'
else
  quietly inside pip install --no-cache-dir "${without[@]}" torch==2.11.0
fi
[ -z "$cuda" ] || quietly inside pip install --no-cache-dir typing-extensions \
  filelock sympy networkx jinja2 fsspec
inside python --version
inside penstock doctor --parts

mkdir -p "$root/tmp/pages"
cp "$source/README.md" "$source/docs/tutorials/own_table.md" \
  "$source/tests/delivery/pages.py" "$root/tmp/pages/"
for page in README.md own_table.md; do
  say "the blocks of $page"
  # shellcheck disable=SC2016
  inside sh -ec 'mkdir -p "/tmp/run-$1" && cd "/tmp/run-$1"
    python /tmp/pages/pages.py --table train.parquet "/tmp/pages/$1"' - "$page"
done
say "a bare $suite runs both pages"

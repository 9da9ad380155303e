#!/usr/bin/env bash
# Sets up a machine with Ubuntu 22.04 for training with Penstock.
#   tools/setup_ubuntu_22_04.sh [--dry-run] [--docker] [--env DIR] [--wheel FILE]
# Seven steps: the system is looked at; packages; NVIDIA's driver, where there is
# a GPU; a Python environment; PyTorch and pyarrow; Penstock; and penstock doctor,
# which tests the result. Each is checked first and left out where nothing is to
# be done, so that the script can be run again at any time, and checked again
# afterwards. What failed is named, with the command.
#   --dry-run      prints the commands, and runs none that changes anything
#   --docker       also Docker and NVIDIA's container toolkit, before the doctor
#   --env DIR      the Python environment; default: ~/penstock
#   --wheel FILE   Penstock's wheel; default: the newest in dist/
# PENSTOCK_SETUP_ROOT is a folder in place of /, for the test of this script.
set -euo pipefail

dry="" with_docker="" env=$HOME/penstock wheel=""
root=${PENSTOCK_SETUP_ROOT:-}
least_driver=580  # of CUDA 13, which PyTorch brings
torch=2.11.0 pyarrow=26.0.1
packages=(ca-certificates curl pciutils python3 python3-venv)
docker_packages=(docker-ce docker-ce-cli containerd.io docker-buildx-plugin
  docker-compose-plugin)

while [ $# -gt 0 ]; do
  case "$1" in
    --dry-run) dry=yes ;;
    --docker) with_docker=yes ;;
    --env | --wheel)
      [ $# -gt 1 ] || { echo "$1 needs a name"; exit 2; }
      if [ "$1" = --env ]; then env=$2; else wheel=$2; fi
      shift ;;
    *)
      sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
      [ "$1" = --help ] || [ "$1" = -h ]
      exit ;;
  esac
  shift
done

sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)

# Runs a command that changes the machine; the last one is named on failure.
last=""
run() {  # COMMAND...
  last=$*
  if [ -n "$dry" ]; then
    printf '    %s\n' "$last"
  else
    "$@"
  fi
}

put() {  # FILE TEXT
  last="writing $1"
  if [ -n "$dry" ]; then
    printf '    write %s\n' "$1"
  else
    "${sudo[@]}" mkdir -p "$(dirname "$1")"
    printf '%s\n' "$2" | "${sudo[@]}" tee "$1" > /dev/null
  fi
}

# What a step says when it cannot go on.
why=""
stop() {
  why=$*
  return 1
}

installed() {  # PACKAGE...
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null |
      grep -q '^install ok installed' || return 1
  done
}

install() {  # PACKAGE...
  run "${sudo[@]}" apt-get update -qq &&
    run "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "$@"
}

# Each step: NAME_done tells whether nothing is left to do, NAME_do does it.

system_done() {
  local release kib
  # shellcheck source=/dev/null
  release=$(. "$root/etc/os-release" && echo "$ID $VERSION_ID") ||
    stop "there is no /etc/os-release" || return
  [ "$release" = "ubuntu 22.04" ] ||
    stop "this is $release; the script is for Ubuntu 22.04" || return
  [ "$(uname -m)" = x86_64 ] ||
    stop "this is $(uname -m); there are wheels for x86_64 alone" || return
  kib=$(df -Pk "$(dirname "$env")" | awk 'NR == 2 {print $4}')
  [ "$kib" -ge 8000000 ] ||
    stop "$(dirname "$env") has $((kib / 1024)) MiB left, and 8 GB are needed"
}
system_do() { return 1; }  # nothing that a script could repair

packages_done() { installed "${packages[@]}"; }
packages_do() { install "${packages[@]}"; }

has_gpu() { lspci -d 10de: 2> /dev/null | grep -qE 'VGA|3D|Display'; }
driver_version() {
  nvidia-smi --query-gpu=driver_version --format=csv,noheader 2> /dev/null |
    head -1
}
driver_done() {
  local found
  has_gpu || { echo "    no NVIDIA GPU: no driver is needed"; return 0; }
  found=$(driver_version) || found=""
  [ "${found%%.*}" -ge "$least_driver" ] 2> /dev/null || {
    stop "NVIDIA's driver is ${found:-not running}, and CUDA 13 needs" \
      "$least_driver or later; after it was installed, restart the machine" \
      "and run this script again"
    return 1
  }
}
driver_do() {
  local package=nvidia-driver-$least_driver
  if installed "$package"; then return 1; fi  # waits for a restart
  install "$package"
}

environment_done() { [ -x "$env/bin/python" ]; }
environment_do() { run python3 -m venv "$env"; }

in_environment() {  # PACKAGE: its version there, or nothing
  "$env/bin/python" -c 'import importlib.metadata, sys
try: print(importlib.metadata.version(sys.argv[1]).split("+")[0])
except importlib.metadata.PackageNotFoundError: pass' "$1" 2> /dev/null || true
}

pytorch_done() {
  [ "$(in_environment torch)" = "$torch" ] &&
    [ "$(in_environment pyarrow)" = "$pyarrow" ]
}
pytorch_do() {
  local index=()
  # Without a GPU the small one: 200 MB in place of 2.5 GB.
  has_gpu || index=(--index-url https://download.pytorch.org/whl/cpu)
  run "$env/bin/python" -m pip install -q "torch==$torch" "${index[@]}" &&
    run "$env/bin/python" -m pip install -q "pyarrow==$pyarrow"
}

penstock_done() {
  local of_wheel
  [ -n "$wheel" ] ||
    wheel=$(find "$(dirname "$0")/../dist" -maxdepth 1 -name 'penstock-*.whl' \
      2> /dev/null | sort -V | tail -1)
  [ -f "$wheel" ] ||
    stop "there is no wheel${wheel:+ $wheel}; tools/make_wheel makes one" \
      "(on Debian 12, or in the stage 'build' of the Dockerfile), --wheel names it" ||
    return
  of_wheel=$(basename "$wheel" | cut -d- -f2)
  [ "$(in_environment penstock)" = "$of_wheel" ]
}
penstock_do() {
  [ -f "$wheel" ] || [ -n "$dry" ] || return 1
  run "$env/bin/python" -m pip install -q "${wheel:-penstock-VERSION.whl}"
}

docker_done() {
  installed "${docker_packages[@]}" &&
    "${sudo[@]}" docker info --format '{{.ServerVersion}}' > /dev/null 2>&1
}
docker_do() {
  local key=/etc/apt/keyrings/docker.asc
  run "${sudo[@]}" mkdir -p "$root$(dirname $key)" &&
    run "${sudo[@]}" curl -fsSL -o "$root$key" \
      https://download.docker.com/linux/ubuntu/gpg &&
    put "$root/etc/apt/sources.list.d/docker.list" \
      "deb [arch=amd64 signed-by=$key] https://download.docker.com/linux/ubuntu jammy stable" &&
    install "${docker_packages[@]}" &&
    run "${sudo[@]}" systemctl enable --now docker
}

toolkit_done() {
  has_gpu || { echo "    no NVIDIA GPU: no toolkit is needed"; return 0; }
  installed nvidia-container-toolkit &&
    "${sudo[@]}" docker info --format '{{.Runtimes}}' 2> /dev/null | grep -q nvidia
}
toolkit_do() {
  local key=/usr/share/keyrings/nvidia-container-toolkit.asc
  local from=https://nvidia.github.io/libnvidia-container
  run "${sudo[@]}" mkdir -p "$root$(dirname $key)" &&
    run "${sudo[@]}" curl -fsSL -o "$root$key" "$from/gpgkey" &&
    put "$root/etc/apt/sources.list.d/nvidia-container-toolkit.list" \
      "deb [signed-by=$key] $from/stable/deb/amd64 /" &&
    install nvidia-container-toolkit &&
    run "${sudo[@]}" nvidia-ctk runtime configure --runtime=docker &&
    run "${sudo[@]}" systemctl restart docker
}

# Tests the machine each time: there is nothing to be done beforehand.
doctor_done() { return 1; }
doctor_do() { run "$env/bin/penstock" doctor; }

steps=(system packages driver environment pytorch penstock)
[ -z "$with_docker" ] || steps+=(docker toolkit)
steps+=(doctor)

number=0
for step in "${steps[@]}"; do
  number=$((number + 1))
  title="step $number of ${#steps[@]}, $step"
  echo "$title"
  why="" last="" failed=""
  if "${step}_done"; then
    echo "    nothing to do"
  elif ! "${step}_do"; then
    failed=${last:+"'$last' did not succeed"}
    failed=${failed:-$why}
  elif [ -z "$dry" ] && [ "$step" != doctor ] && ! "${step}_done"; then
    failed=${why:-"its check still fails after '$last'"}
  fi
  [ -z "$failed" ] || {
    echo "$title, failed: $failed" >&2
    exit 1
  }
done
if [ -n "$dry" ]; then
  echo "nothing was changed"
else
  echo "this machine is ready: . $env/bin/activate"
fi

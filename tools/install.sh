# Sourced by ./quickstart and ./check: install_packages GROUP... installs the
# Debian packages of these groups that are missing, and says which.
packages_run="g++ cmake ninja-build ccache nlohmann-json3-dev libcli11-dev
  libsimdjson-dev libsqlite3-dev libpq-dev python3 git"
packages_torch="python3-pip"
packages_build="clang-14 clang-format-14 libclang-rt-14-dev libgtest-dev
  libgmock-dev postgresql"

install_packages() {
  local group list missing=""
  for group in "$@"; do
    list="packages_$group"
    for package in ${!list}; do
      dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
        grep -q '^install ok installed' || missing="$missing $package"
    done
  done
  [ -z "$missing" ] && return
  echo "installing from Debian:$missing"
  if ! command -v apt-get >/dev/null; then
    echo "this is no Debian: install the like of these, then run again"
    exit 1
  fi
  local sudo=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
      echo "not root and no sudo: as root, run apt-get install$missing"
      exit 1
    }
    sudo=sudo
  fi
  case "$missing" in *postgresql*) without_main_cluster "$sudo" ;; esac
  $sudo apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq \
    --no-install-recommends -o Dpkg::Options::=--force-confold \
    $missing >/dev/null
}

# Debian's PostgreSQL makes and starts a cluster of its own unless it is told
# not to before it is installed.
without_main_cluster() {  # SUDO
  local file=/etc/postgresql-common/createcluster.conf
  [ -e "$file" ] && return
  $1 mkdir -p "$(dirname "$file")"
  echo "create_main_cluster = false" | $1 tee "$file" >/dev/null
}

# Finds or fetches libtorch, and leaves CMake's arguments for it in with_torch.
# PENSTOCK_TORCH: auto (go on without it when it cannot be had), on or off.
find_torch() {
  local wish=${PENSTOCK_TORCH:-auto} folder
  with_torch=("-DPENSTOCK_TORCH=$wish")
  [ "$wish" = off ] && return
  install_packages torch
  if folder=$(tools/fetch_torch); then
    with_torch+=("-DPENSTOCK_TORCH_DIR=$folder")
  elif [ "$wish" = on ]; then
    exit 1
  else
    echo "going on without libtorch: no network will be trained"
    with_torch=(-DPENSTOCK_TORCH=off)
  fi
}

# Makes a build folder. One that was configured with another compiler starts
# anew.
build_folder() {  # FOLDER COMPILER
  grep -qs "^CMAKE_CXX_COMPILER:.*/$2\$" "$1/CMakeCache.txt" ||
    rm -rf "$1/CMakeCache.txt" "$1/CMakeFiles"
  mkdir -p "$1"
}

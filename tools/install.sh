# Sourced by ./quickstart, ./check, tools/fetch_frames and bench/peers/setup.sh:
# install_packages GROUP... installs the Debian packages of these groups that
# are missing, and says which.
# What the kinds of sources need, as their descriptors say.
packages_sources=$(sed -n 's/.*\.to_build = "\(.*\)".*/\1/p' \
  "$(dirname "${BASH_SOURCE[0]}")"/../penstock/sources/*/descriptor.cpp)
packages_run="g++ cmake ninja-build ccache nlohmann-json3-dev libcli11-dev
  libsimdjson-dev libyaml-dev $packages_sources python3 git"
packages_wheels="python3-pip"
packages_python="python3-venv python3-dev"
packages_frames="libgtest-dev libgmock-dev"
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
    echo "not a Debian system: install the equivalent packages, then run again"
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
  LC_ALL=C apt-get install --assume-no --no-install-recommends $missing \
    2> /dev/null | grep '^Need to get' || true
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
  install_packages wheels
  if folder=$(tools/fetch_torch); then
    with_torch+=("-DPENSTOCK_TORCH_DIR=$folder")
  elif [ "$wish" = on ]; then
    exit 1
  else
    echo "going on without libtorch: no network will be trained"
    with_torch=(-DPENSTOCK_TORCH=off)
  fi
}

# The same for Arrow, whose libraries read Parquet and Arrow files: with_arrow,
# and PENSTOCK_ARROW.
find_arrow() {
  local wish=${PENSTOCK_ARROW:-auto} folder
  with_arrow=("-DPENSTOCK_ARROW=$wish")
  [ "$wish" = off ] && return
  install_packages wheels
  if folder=$(tools/fetch_arrow); then
    with_arrow+=("-DPENSTOCK_ARROW_DIR=$folder")
  elif [ "$wish" = on ]; then
    exit 1
  else
    echo "going on without Arrow: Parquet and Arrow files need pyarrow then"
    with_arrow=(-DPENSTOCK_ARROW=off)
  fi
}

# Finds or makes the environment that the Python package is built and tested
# in, and leaves CMake's arguments for it in with_python. It is kept for every
# clone. PENSTOCK_PYTHON: on (the default) or off.
find_python() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/python
  with_python=(-DPENSTOCK_PYTHON=off)
  [ "${PENSTOCK_PYTHON:-on}" = off ] && return
  install_packages python
  make_python "$folder" || {
    echo "there is no environment for the Python package: see above. Mend that"
    echo "(PIP_INDEX_URL names another package index), remove $folder if it"
    echo "holds a broken one, or set PENSTOCK_PYTHON=off to go on without"
    exit 1
  }
  fetch_oldest_numpy "$folder"
  with_python=(-DPENSTOCK_PYTHON=on "-DPython_EXECUTABLE=$folder/bin/python")
}

# The oldest numpy that there is a wheel of, which one test asks for; that is
# skipped where there is none.
fetch_oldest_numpy() {  # FOLDER
  local into=$1-oldest-numpy numpy
  [ -d "$into/numpy" ] && return
  for numpy in "numpy>=1.23,<1.24" "numpy>=1.23,<2"; do
    rm -rf "$into" "$into.new"
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check \
      --no-deps --only-binary=:all: --target "$into.new" "$numpy" \
      2> /dev/null && mv "$into.new" "$into" && return
  done
  echo "there is no old numpy for $("$1/bin/python" --version)"
}

# By version ranges, so that a security release of one needs no change here.
python_wheels="nanobind>=3.1,<4 nanobind-backend>=1.0,<2
  scikit-build-core>=0.11,<2 build>=1.2,<2 numpy>=1.23,<3 mypy>=1.13,<3
  pyarrow>=18,<30 pandas>=2.2,<4 polars>=1,<2 h5py>=3.8,<4 zarr>=2.16,<4
  datasets>=3,<6 duckdb>=1.1,<2 fastapi>=0.115,<1 uvicorn>=0.30,<0.60"

# A stamp is written last: what was interrupted is done again. One at a time.
make_python() (  # FOLDER
  folder=$1
  wished="$(python3 --version): $(echo $python_wheels)"
  mkdir -p "$folder" || exit 1
  exec 9> "$folder.lock"
  flock 9
  if [ "$("$folder/bin/python" --version 2> /dev/null)" != \
    "$(python3 --version)" ]; then
    echo "making the Python environment $folder"
    python3 -m venv --clear "$folder" || exit 1
  fi
  [ "$(cat "$folder/penstock-wheels" 2> /dev/null)" = "$wished" ] && exit
  # shellcheck disable=SC2086
  echo "fetching from the package index:" $python_wheels
  # shellcheck disable=SC2086
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
    $python_wheels || exit 1
  echo "$wished" > "$folder/penstock-wheels"
)

# torch for Python, by this pip command. The wheel for the CPU alone is the
# small one; PyPI's carries CUDA with it.
install_torch() {  # PIP...
  local index=https://download.pytorch.org/whl/cpu
  if ! "$@" "torch>=2.11,<3" --index-url "$index" >&2; then
    echo "$index cannot be reached: torch comes from PyPI" >&2
    "$@" "torch>=2.11,<3" >&2
  fi
}

# Makes a build folder. One that was configured with another compiler starts
# anew.
build_folder() {  # FOLDER COMPILER
  grep -qs "^CMAKE_CXX_COMPILER:.*/$2\$" "$1/CMakeCache.txt" ||
    rm -rf "$1/CMakeCache.txt" "$1/CMakeFiles"
  mkdir -p "$1"
}

# Of ninja's lines, how far it is: on a terminal one line that moves, elsewhere
# a line for each tenth.
show_progress() {
  local line tenth last=0
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    line="built ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
    if [ -t 1 ]; then
      printf '\r%s' "$line"
    elif [ "$tenth" != "$last" ]; then
      echo "$line"
    fi
    last=$tenth
  done
  [ ! -t 1 ] || echo
}

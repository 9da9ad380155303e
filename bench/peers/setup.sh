#!/usr/bin/env bash
# Makes the environment of the peers: torch, numpy, psycopg 3 and orjson in a
# virtual environment in your cache folder (about 1 GB; 5.4 GB where only PyPI
# can be reached, whose torch carries CUDA with it), and what the package
# penstock of a build needs beside them. Prints its folder.
# Needs Python 3 with venv and the network, once; neither the quick start nor
# the check needs it.
set -eu
. "$(dirname "$0")/../../tools/install.sh"
folder=${PENSTOCK_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock/peers}

needed="import torch, numpy, psycopg, orjson, nanobind_backend"

if "$folder/bin/python" -c "$needed" 2>/dev/null
then
  echo "$folder"
  exit
fi
echo "making $folder" >&2
python3 -m venv "$folder"
pip=("$folder/bin/pip" install --quiet)
"${pip[@]}" numpy "psycopg[binary]>=3.1" orjson "nanobind-backend>=1,<2" >&2
"$folder/bin/python" -c "import torch" 2>/dev/null || install_torch "${pip[@]}"
"$folder/bin/python" -c "$needed"
echo "$folder"

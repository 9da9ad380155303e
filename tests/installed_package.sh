#!/usr/bin/env bash
# Installs the build, compiles the face of each room by itself, builds
# examples/cpp_loop against the installed package and runs it, as somebody would
# who has nothing but that package.
#   installed_package.sh SOURCE BUILD COMPILER
set -eu
source=$1 build=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/penstock" > "$work/install.log"

headers=$work/penstock/include
for face in base/base.h run/run.h; do
  [ -f "$headers/penstock/$face" ] || { echo "$face is missing"; exit 1; }
done
if find "$headers" -name 'test_*' -o -name 'fake*' -o -name detail | grep .; then
  echo "these are for tests, or the inside of a room"
  exit 1
fi
# No other header is promised to anybody.
for face in "$headers"/penstock/*/; do
  face=penstock/$(basename "$face")/$(basename "$face").h
  [ -f "$headers/$face" ] || continue
  printf '#include <%s>\n' "$face" |
    "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Werror \
      -I"$headers" -x c++ - ||
    { echo "$face does not compile by itself"; exit 1; }
done

cp -r "$source/examples/cpp_loop" "$work/"
cmake -S "$work/cpp_loop" -B "$work/build" -G Ninja \
  -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/penstock" > "$work/configure.log" ||
  { cat "$work/configure.log"; exit 1; }
cmake --build "$work/build"
cd "$work"
penstock/bin/penstock demo positions --rows 600 --seed 1 --to sqlite:p.sqlite
build/cpp_loop "$source/examples/positions/job.json" source.path=p.sqlite \
  device=cpu loader.batch_size=64 train.epochs=2 | tee out
grep -q ' steps over 600 rows' out

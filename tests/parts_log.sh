#!/bin/sh
# parts_log.sh NM PART...: each loadable part that logs lets the program give it
# its log, and each keeps the CUDA runtime that it may carry to itself.
set -eu
nm=$1
shift
for part; do
  holds=$("$nm" --defined-only "$part" | awk '{print $NF}')
  shows=$("$nm" -D --defined-only "$part" | awk '{print $NF}')
  if echo "$holds" | grep -q '^_ZN8penstock3logE' &&
    ! echo "$shows" | grep -qx penstock_part_log_to; then
    echo "$part logs, and does not show penstock_part_log_to: it is not heard"
    exit 1
  fi
  if echo "$shows" | grep '^cuda[A-Z]'; then
    echo "$part shows a CUDA runtime, which may be taken for that of libtorch"
    exit 1
  fi
done
echo "$# parts looked at"

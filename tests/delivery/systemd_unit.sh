#!/usr/bin/env bash
# Runs the job service by its systemd unit: a job trains while the service is
# stopped, killed and started again, and ends once.
#   systemd_unit.sh PROGRAM       as root; in a container or virtual machine that
#                                 systemd has not booted, because the user
#                                 manager that it starts takes all processes of
#                                 the root cgroup into its scope
set -euo pipefail
program=$(realpath "$1")
source=$(cd "$(dirname "$0")/../.." && pwd)
manager=/lib/systemd/systemd
if [ "$(id -u)" != 0 ] || [ -e /run/systemd/system ] || [ ! -x "$manager" ]; then
  echo "the unit is not tried: that needs root and a systemd that has not booted"
  exit 77
fi
if [ "${PENSTOCK_OWN_MOUNTS:-}" != yes ]; then
  PENSTOCK_OWN_MOUNTS=yes exec unshare -m "$0" "$program"
fi
mount --make-rprivate /
mkdir -p /run/systemd
mount -t tmpfs tmpfs /run/systemd
mkdir /run/systemd/system

work=$(mktemp -d) job=""
export HOME=$work/home XDG_RUNTIME_DIR=$work/run XDG_CONFIG_HOME=$work/config
mkdir -p "$HOME/penstock" "$XDG_RUNTIME_DIR" "$XDG_CONFIG_HOME/systemd/user"
chmod 700 "$XDG_RUNTIME_DIR"
# shellcheck disable=SC2329  # called by the trap
remove() {
  [ -z "$job" ] || api "/api/training/jobs/$job/cancel" --request POST || true
  systemctl --user stop penstock || true
  kill "$started" || true
  wait "$started" || true
  rm -rf --one-file-system "$work"
}

say() { printf '== %s\n' "$*"; }
fail() { echo "$*"; journal; exit 1; }
journal() { cat "$work/log"; }
until_it() {  # WHAT COMMAND...
  local what=$1 left=600
  shift
  until "$@" > /dev/null 2>&1; do
    [ $((left -= 1)) -gt 0 ] || fail "waited in vain: $what"
    sleep 0.1
  done
}
api() {  # PATH CURL-ARGUMENT...
  local path=$1
  shift
  curl --silent --fail --max-time 5 --header "Authorization: Bearer $(
    awk '$1 == "operator" { print $2 }' "$HOME/penstock/runs/token")" "$@" \
    "http://127.0.0.1:8000$path"
}
is_up() { api /healthz; }
status() { api "/api/training/jobs/$job" | field status; }
field() { python3 -c "import json, sys; print(json.load(sys.stdin)['$1'])"; }
steps() { cat "$HOME/penstock/runs/$job"/runs/2*/steps.jsonl | wc -l; }
has_gone_on() { [ "$(steps)" -gt "$1" ]; }
is_cancelled() { [ "$(status)" = cancelled ]; }
is_new() { ! main_pid | grep -qx -e "$1" -e 0; }
main_pid() { systemctl --user show --property MainPID --value penstock; }

say "writing the unit and a job"
cp "$source/tools/penstock.service" "$XDG_CONFIG_HOME/systemd/user/"
mkdir "$XDG_CONFIG_HOME/systemd/user/penstock.service.d"
# As the documentation says for a program that is in neither /usr/bin nor
# /usr/local/bin.
cat > "$XDG_CONFIG_HOME/systemd/user/penstock.service.d/program.conf" << END
[Service]
ExecStart=
ExecStart=$program serve --config %h/penstock/service.json --http 127.0.0.1:8000
Environment=PATH=$PATH PYTHONPATH=${PYTHONPATH:-} PENSTOCK_PYTHON=${PENSTOCK_PYTHON:-}
END
(
  cd "$HOME/penstock"
  { echo a,b,y; for row in $(seq 400); do
      echo "$row,$((row * 7 % 31)),$((row * 3 % 17))"; done; } > t.csv
  echo '{"source": {"kind": "csv", "path": "t.csv"},
         "fields": {"x": {"columns": ["a", "b"]}, "y": {"column": "y"}},
         "split": {"train": 0.8, "val": 0.2}, "loader": {"batch_size": 32},
         "model": {"kind": "tabular", "target": "y"},
         "train": {"epochs": 3, "checkpoint_every_steps": 50},
         "device": "cpu"}' > job.json
  echo '{"recipes": {"t": {"job": "job.json"}}, "runs": "runs", "slots": 1}' \
    > service.json
)

say "starting it by systemctl --user"
"$manager" --user --log-target=console > "$work/log" 2>&1 &
started=$!
trap remove EXIT
until_it "the user manager" systemctl --user is-system-running --wait
systemctl --user enable --now penstock
until_it "the service" is_up
job=$(api /api/training/jobs --header "Content-Type: application/json" \
  --data '{"job_name": "by systemd", "config": {"epochs": 100000}}' | field id)
until_it "the first steps" has_gone_on 3

say "stopping the service: the job continues"
systemctl --user stop penstock
before=$(steps)
until_it "more steps without the service" has_gone_on $((before + 3))

say "starting it again: the job is found"
systemctl --user start penstock
until_it "the service" is_up
[ "$(status)" = running ] || fail "the job is $(status)"

say "killing the service: systemd starts it again, and the job continues"
old=$(main_pid)
kill -KILL "$old"
until_it "another process" is_new "$old"
until_it "the service" is_up
before=$(steps)
until_it "more steps" has_gone_on $((before + 3))

say "cancelling the job: its state is saved"
api "/api/training/jobs/$job/cancel" --request POST > /dev/null
until_it "the end of the job" is_cancelled
[ "$(find "$HOME/penstock/runs/$job" -maxdepth 1 -name 'attempt-*' | wc -l)" = 1 ] ||
  fail "the job was started more than once"
say "all as expected"

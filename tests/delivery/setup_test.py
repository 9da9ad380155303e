#!/usr/bin/env python3
"""tools/setup_ubuntu_22_04.sh over commands that only keep a record: what it
does, that the second run changes nothing, and that a step that fails is named.
"""
import hashlib
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/setup_ubuntu_22_04.sh"
# Stands for every command that looks at the machine or changes it. A machine is
# a folder: packages/NAME, and files that say what else is there.
STAND_IN = r"""#!/bin/bash
name=$(basename "$0")
echo "$name $*" >> "$MACHINE.log"
[ -z "${FAIL:-}" ] || ! [[ "$name $*" =~ $FAIL ]] || exit 1
case "$name" in
  sudo) exec "$@" ;;
  uname) echo "${PROCESSOR:-x86_64}" ;;
  df) printf 'Filesystem\nx 0 0 %s 0 /\n' "${FREE_KIB:-90000000}" ;;
  dpkg-query)
    [ -e "$MACHINE/packages/${!#}" ] || exit 1
    echo "install ok installed" ;;
  apt-get)
    [ "$1" = install ] || exit 0
    for package in "$@"; do
      case "$package" in
        install | -*) ;;
        nvidia-driver-*) touch "$MACHINE/packages/$package"
          [ -n "${RESTARTS:-}" ] || echo 580.95.05 > "$MACHINE/driver" ;;
        *) touch "$MACHINE/packages/$package" ;;
      esac
    done ;;
  lspci) [ ! -e "$MACHINE/gpu" ] || echo "01:00.0 3D controller: NVIDIA" ;;
  nvidia-smi) cat "$MACHINE/driver" ;;
  curl)
    while [ $# -gt 0 ]; do
      if [ "$1" = -o ]; then echo key > "$2"; fi
      shift
    done ;;
  systemctl) ;;
  nvidia-ctk) echo nvidia > "$MACHINE/runtimes" ;;
  docker)
    [ -e "$MACHINE/packages/docker-ce" ] || exit 1
    cat "$MACHINE/runtimes" 2> /dev/null
    exit 0 ;;
  python3)
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python"
    cp "$0" "$3/bin/penstock" ;;
  python)
    if [ "$1" = -c ]; then
      cat "$MACHINE/pip/$3" 2> /dev/null
      exit 0
    fi
    for package in "$@"; do
      case "$package" in
        *==*) echo "${package#*==}" > "$MACHINE/pip/${package%%==*}" ;;
        *.whl) basename "$package" | cut -d- -f2 > "$MACHINE/pip/penstock" ;;
      esac
    done ;;
  penstock) ;;
esac
"""
COMMANDS = ["sudo", "uname", "df", "dpkg-query", "apt-get", "lspci",
            "nvidia-smi", "curl", "systemctl", "nvidia-ctk", "docker",
            "python3"]


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("bin", "machine/packages", "machine/pip", "root/etc",
                     "dist"):
            (self.folder / name).mkdir(parents=True)
        for name in COMMANDS:
            command = self.folder / "bin" / name
            command.write_text(STAND_IN)
            command.chmod(0o755)
        (self.folder / "machine/gpu").touch()
        (self.folder / "root/etc/os-release").write_text(
            'ID=ubuntu\nVERSION_ID="22.04"\n')
        self.wheel = self.folder / "dist/penstock-0.1.0-cp310-abi3-any.whl"
        self.wheel.touch()

    def set_up(self, *arguments, **variables):
        """Runs the script: its code, what it printed, the commands it gave."""
        log = self.folder / "machine.log"
        log.write_text("")
        done = subprocess.run(
            ["bash", SCRIPT, "--wheel", self.wheel, "--env",
             self.folder / "environment", *arguments],
            env={"PATH": f"{self.folder}/bin:{os.environ['PATH']}",
                 "HOME": str(self.folder),
                 "MACHINE": str(self.folder / "machine"),
                 "PENSTOCK_SETUP_ROOT": str(self.folder / "root"),
                 **variables},
            capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr, log.read_text()

    def state(self):
        """All files of the machine, with their times and contents."""
        return {str(file.relative_to(self.folder)):
                (file.stat().st_mtime_ns,
                 hashlib.sha256(file.read_bytes()).hexdigest())
                for part in ("machine", "root", "environment")
                for file in (self.folder / part).rglob("*") if file.is_file()}

    def test_seven_steps_end_with_the_doctor(self):
        code, said, log = self.set_up()
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("of 7,"), 7)
        self.assertTrue(log.rstrip().endswith("penstock doctor"), log)
        for done in ("nvidia-driver-580", "torch==2.11.0", self.wheel.name):
            self.assertIn(done, log)

    def test_the_second_run_changes_nothing(self):
        self.assertEqual(self.set_up("--docker")[0], 0)
        before = self.state()
        code, said, log = self.set_up("--docker")
        self.assertEqual(code, 0, said)
        self.assertEqual(self.state(), before)
        self.assertEqual(said.count("nothing to do"), 8)
        self.assertNotRegex(log, "(?m)^(apt-get|curl|systemctl|nvidia-ctk|"
                                 "python -m|python3 -m)")

    def test_a_dry_run_changes_nothing_and_shows_the_commands(self):
        before = self.state()
        code, said, log = self.set_up("--dry-run", "--docker")
        self.assertEqual(code, 0, said)
        self.assertEqual(self.state(), before)
        self.assertIn("apt-get install -y", said)
        self.assertIn("write " + str(self.folder / "root/etc/apt"), said)
        self.assertIn("nothing was changed", said)
        self.assertNotIn("apt-get", log)

    def test_each_step_that_fails_is_named(self):
        for step, command in (
                ("packages", "apt-get install .*python3"),
                ("driver", "apt-get install .*nvidia-driver"),
                ("environment", "python3 -m venv"),
                ("pytorch", "pip install .*torch"),
                ("pytorch", "pip install .*pyarrow"),
                ("penstock", "pip install .*whl"),
                ("docker", "curl .*docker"),
                ("docker", "apt-get install .*docker-ce"),
                ("toolkit", "nvidia-ctk"),
                ("toolkit", "systemctl restart"),
                ("doctor", "penstock doctor")):
            code, said, _ = self.set_up("--docker", FAIL=command)
            self.assertEqual(code, 1, command)
            last = said.strip().splitlines()[-1]
            self.assertRegex(last, rf"^step \d of 9, {step}, failed: "
                                   r"'.*' did not succeed$")

    def test_a_package_that_does_not_come_is_named(self):
        code, said, _ = self.set_up(FAIL="dpkg-query .*pciutils")
        self.assertEqual(code, 1)
        self.assertIn("packages, failed: its check still fails", said)

    def test_another_system_is_refused(self):
        (self.folder / "root/etc/os-release").write_text(
            'ID=debian\nVERSION_ID="12"\n')
        code, said, log = self.set_up()
        self.assertEqual(code, 1)
        self.assertIn("system, failed: this is debian 12", said)
        self.assertNotIn("apt-get", log)

    def test_another_processor_and_a_full_drive_are_refused(self):
        self.assertIn("this is aarch64", self.set_up(PROCESSOR="aarch64")[1])
        self.assertIn("8 GB are needed", self.set_up(FREE_KIB="5000")[1])

    def test_a_driver_that_waits_for_a_restart_is_said(self):
        for _ in range(2):
            code, said, _ = self.set_up(RESTARTS="yes")
            self.assertEqual(code, 1)
            self.assertIn("driver, failed: NVIDIA's driver is not running", said)
            self.assertIn("restart the machine", said)

    def test_without_a_gpu_nothing_of_nvidia_is_installed(self):
        (self.folder / "machine/gpu").unlink()
        code, said, log = self.set_up("--docker")
        self.assertEqual(code, 0, said)
        self.assertNotIn("install nvidia", log)
        self.assertNotIn("nvidia-ctk", log)
        self.assertIn("whl/cpu", log)

    def test_a_missing_wheel_is_named(self):
        self.wheel.unlink()
        code, said, _ = self.set_up()
        self.assertEqual(code, 1)
        self.assertIn(f"there is no wheel {self.wheel}", said)


if __name__ == "__main__":
    unittest.main()

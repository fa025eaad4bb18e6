"""The script ``crossover``: what it finds, what it installs, what it hands over, without a network.

Programs of the machine are stood in by small scripts on a PATH of the test's own.
"""

import os
import pty
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "crossover"
TOOLS = ("cat", "cmp", "cp", "dirname", "env", "id", "mkdir", "printf", "sh", "touch")

# A Python that answers as asked: its version fits (or not), it makes virtual environments that
# hold such a Python again, and tells what it was asked to run.
PYTHON = """\
#!/bin/sh
case "$1 $2" in
"-c import sys, venv, ensurepip"*) exit {fits} ;;
"-c import sysconfig"*) echo "{site}" ;;
"-m venv")
	mkdir -p "$4/bin"
	cp "$0" "$4/bin/python"
	touch "$4/bin/pip"
	;;
"-m pip") echo "pip $*" >>"{log}"; exit {pip} ;;
*) echo "run $*" >>"{log}" ;;
esac
"""


class Machine:
    """A checkout of the script and a PATH with nothing but what a test puts there."""

    def __init__(self, folder):
        self.root = folder / "check out"
        self.bin = folder / "bin"
        self.log = folder / "log"
        self.site = folder / "site"
        for path in (self.root / "requirements", self.bin, self.site):
            path.mkdir(parents=True)
        shutil.copy(SCRIPT, self.root / "crossover")
        for name in ("run", "dev"):
            (self.root / "requirements" / f"{name}.txt").write_text(f"{name}==1\n")
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name))

    def program(self, name, script):
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def python(self, name="python3", fits=0, pip=0):
        self.program(name, PYTHON.format(fits=fits, pip=pip, log=self.log, site=self.site))

    def run(self, *words, terminal=None):
        return subprocess.run(
            [str(self.root / "crossover"), *words],
            env={"PATH": str(self.bin), "HOME": "/nonexistent"},
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def told(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def answering():
    """A terminal at which somebody already typed an answer."""
    opened = []

    def make(answer):
        master, slave = pty.openpty()
        os.write(master, f"{answer}\n".encode())
        opened.extend((master, slave))
        return slave

    yield make
    for number in opened:
        os.close(number)


def pip_line(machine, name):
    return (
        "pip -m pip install --quiet --disable-pip-version-check --no-input --prefer-binary"
        f" --require-hashes --requirement {machine.root}/requirements/{name}.txt"
    )


def test_shellcheck_has_no_complaint():
    checker = shutil.which("shellcheck")
    assert checker, "shellcheck is not installed; crossover setup --tests installs it"
    done = subprocess.run([checker, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert SCRIPT.stat().st_mode & stat.S_IXUSR


def test_it_is_posix_shell_and_works_under_dash():
    dash = shutil.which("dash")
    assert dash
    assert subprocess.run([dash, "-n", str(SCRIPT)], check=False).returncode == 0


def test_the_first_use_sets_up_by_hash_and_hands_over(machine):
    machine.python()
    done = machine.run("lab", "status")
    assert done.returncode == 0
    assert machine.told == [pip_line(machine, "run"), "run -m collector lab status"]
    assert done.stderr == f"setting up {machine.root}/.venv\n"
    assert (machine.site / "crossover.pth").read_text() == f"{machine.root}\n"


def test_the_second_use_only_hands_over(machine):
    machine.python()
    machine.run("demo")
    machine.log.unlink()
    done = machine.run("demo", "--blocks", "2")
    assert (done.stderr, machine.told) == ("", ["run -m collector demo --blocks 2"])


def test_tests_and_lint_take_the_larger_set_which_then_serves_both(machine):
    machine.python()
    machine.run("test", "-k", "one two")
    machine.run("lint")
    machine.run("plan", "x")
    assert machine.told == [
        pip_line(machine, "dev"),
        "run -m collector.devel test -k one two",
        "run -m collector.devel lint",
        "run -m collector plan x",
    ]


def test_other_requirements_are_installed_anew(machine):
    machine.python()
    machine.run("demo")
    (machine.root / "requirements" / "run.txt").write_text("run==2\n")
    machine.run("demo")
    assert machine.told.count(pip_line(machine, "run")) == 2


def test_a_setup_that_was_cut_off_is_done_again(machine):
    machine.python(pip=1)
    done = machine.run("demo")
    assert done.returncode == 1
    assert done.stderr.endswith(
        f"crossover: pip could not install {machine.root}/requirements/run.txt\n"
    )
    assert "run -m collector demo" not in machine.told
    shutil.rmtree(machine.root / ".venv")
    machine.python()
    assert machine.run("demo").returncode == 0
    assert machine.told[-1] == "run -m collector demo"


def test_an_older_python_is_passed_over_for_a_newer_one(machine):
    machine.python("python3", fits=1)
    machine.python("python3.12")
    assert machine.run("demo").returncode == 0
    assert machine.told[-1] == "run -m collector demo"


def test_without_a_python_and_apt_it_says_what_to_install(machine):
    machine.python("python3", fits=1)
    done = machine.run("demo")
    assert done.returncode == 1
    assert done.stderr == (
        "crossover: python3 python3-venv missing, and no apt-get here; install them by hand and"
        " start again\n"
    )


def apt(machine, code=0):
    """An apt-get that brings a Python."""
    machine.python("new-python")
    script = f'#!/bin/sh\necho "apt-get $*" >>"{machine.log}"\n'
    script += (
        f'case $* in *install*) cp "{machine.bin}/new-python" "{machine.bin}/python3" ;; esac\n'
    )
    machine.program("apt-get", script + f"exit {code}\n")


def as_user(machine, number):
    machine.program("id", f"#!/bin/sh\necho {number}\n")


APT_LINES = [
    "apt-get -qq update",
    "apt-get -qq install --yes --no-install-recommends python3 python3-venv",
]


def test_root_installs_without_a_question_where_nobody_can_answer(machine):
    apt(machine)
    as_user(machine, 0)
    done = machine.run("demo")
    assert done.returncode == 0, done.stderr
    assert machine.told[:2] == APT_LINES
    assert "installing python3 python3-venv" in done.stderr


def test_an_ordinary_user_installs_through_sudo(machine):
    apt(machine)
    as_user(machine, 1000)
    machine.program("sudo", f'#!/bin/sh\necho "sudo $1" >>"{machine.log}"\nexec "$@"\n')
    assert machine.run("demo").returncode == 0
    assert [line for line in machine.told if line.startswith("sudo")] == [
        "sudo apt-get",
        "sudo env",
    ]


def test_without_root_and_sudo_it_says_the_command_for_root(machine):
    apt(machine)
    as_user(machine, 1000)
    done = machine.run("demo")
    assert done.returncode == 1
    assert done.stderr == (
        "crossover: neither root nor sudo; as root: apt-get install python3 python3-venv\n"
    )


def test_apt_that_fails_ends_it_in_one_line(machine):
    apt(machine, code=100)
    as_user(machine, 0)
    done = machine.run("demo")
    assert done.returncode == 1
    assert done.stderr.endswith("crossover: apt-get could not install python3 python3-venv\n")


def test_apt_that_brings_no_fitting_python_is_told(machine):
    machine.program("apt-get", "#!/bin/sh\n")
    as_user(machine, 0)
    done = machine.run("demo")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "crossover: found no Python; wanted 3.11 or newer with the module venv\n"
    )


@pytest.mark.parametrize("answer", ["n", "no", "what?"])
def test_at_a_terminal_it_asks_first_and_takes_no_for_an_answer(machine, answering, answer):
    apt(machine)
    as_user(machine, 0)
    done = machine.run("demo", terminal=answering(answer))
    assert done.returncode == 1
    assert done.stderr == (
        "Install python3 python3-venv with apt-get now? [Y/n] crossover: not installed; to do it"
        " by hand: apt-get install python3 python3-venv\n"
    )
    assert machine.told == []


@pytest.mark.parametrize("answer", ["", "y", "Yes"])
def test_at_a_terminal_yes_is_the_usual_answer(machine, answering, answer):
    apt(machine)
    as_user(machine, 0)
    assert machine.run("demo", terminal=answering(answer)).returncode == 0
    assert machine.told[:2] == APT_LINES


def test_it_works_from_any_folder_and_through_a_path_with_spaces(machine, tmp_path):
    machine.python()
    done = subprocess.run(
        ["../check out/crossover", "doctor"],
        cwd=machine.bin,
        env={"PATH": str(machine.bin)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert machine.told[-1] == "run -m collector doctor"

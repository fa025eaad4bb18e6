"""The connection that confirms: built from Ansible's options, shares nothing with its own."""

from __future__ import annotations

import pytest

from ansible_collections.crossover.lab.plugins.plugin_utils.new_connection import (
    Route,
    RouteError,
    ask,
    read_route,
)

OPTIONS = {
    "host": "192.0.2.1",
    "port": 2222,
    "remote_user": "admin",
    "private_key_file": "/keys/lab",
    "ssh_args": "-C -o ControlMaster=auto -o ControlPersist=60s",
    "ssh_common_args": "-F '/labs/a b/ssh_config'",
    "ssh_extra_args": "-o ProxyJump=gate",
    "ssh_executable": "/usr/bin/ssh",
    "password": None,
}


def test_the_connection_is_new_and_otherwise_as_ansibles():
    argv = read_route(OPTIONS, None).argv(["/bin/sh", "/run/a b/script", "disarm"], 30)
    assert argv == [
        "/usr/bin/ssh",
        "-o", "ControlMaster=no", "-o", "ControlPath=none",
        "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
        "-C", "-o", "ControlMaster=auto", "-o", "ControlPersist=60s",
        "-F", "/labs/a b/ssh_config", "-o", "ProxyJump=gate",
        "-o", "Port=2222", "-o", "User=admin", "-o", "IdentityFile=/keys/lab",
        "-T", "192.0.2.1", "/bin/sh '/run/a b/script' disarm",
    ]  # fmt: skip


def test_what_is_not_given_is_left_to_ssh():
    route = read_route({**dict.fromkeys(OPTIONS), "host": "server"}, None)
    assert route.argv(["true"], 3.9) == [
        "ssh",
        "-o", "ControlMaster=no", "-o", "ControlPath=none",
        "-o", "BatchMode=yes", "-o", "ConnectTimeout=3",
        "-T", "server", "true",
    ]  # fmt: skip


def test_host_keys_are_never_waved_through():
    assert not [word for word in read_route(OPTIONS, None).argv(["true"], 5) if "HostKey" in word]


@pytest.mark.parametrize(
    ("become", "words", "secret"),
    [
        ({"method": "sudo", "user": None, "password": None}, "sudo -n -u root true", ""),
        (
            {"method": None, "user": "boss", "password": "pw"},
            "sudo -S -p '' -u boss true",
            "pw\n",
        ),
    ],
)
def test_root_is_reached_by_sudo(become, words, secret):
    route = read_route(OPTIONS, become)
    assert route.argv(["true"], 5)[-1] == words
    assert route.secret == secret
    assert "pw" not in " ".join(route.argv(["true"], 5)).split()


def test_a_password_is_refused_before_anything_changes():
    with pytest.raises(RouteError) as error:
        read_route({**OPTIONS, "password": "pw"}, None)
    assert str(error.value) == (
        "guard: the connection uses a password; the new connection that confirms a change wants "
        "a key or an agent"
    )


def test_another_become_method_is_refused():
    with pytest.raises(RouteError) as error:
        read_route(OPTIONS, {"method": "doas"})
    assert str(error.value) == (
        "guard: become method 'doas'; the new connection that confirms a change knows sudo only"
    )


def make_ssh(folder, text):
    program = folder / "ssh"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return Route("server", executable=str(program), secret="pw\n")


@pytest.mark.parametrize(
    ("text", "reached", "code", "out", "said"),
    [
        ("echo disarmed", True, 0, "disarmed\n", ""),
        ("cat; echo denied >&2; exit 1", True, 1, "pw\n", "denied"),
        ("echo; echo 'connect: refused' >&2; exit 255", False, 255, "\n", "connect: refused"),
    ],
)
def test_an_answer_says_whether_the_host_was_reached(tmp_path, text, reached, code, out, said):
    answer = ask(make_ssh(tmp_path, text), ["true"], 10)
    assert (answer.reached, answer.code, answer.out, answer.said) == (reached, code, out, said)


def test_silence_is_bounded(tmp_path):
    answer = ask(make_ssh(tmp_path, "exec sleep 30"), ["true"], 1)
    assert (answer.reached, answer.said) == (False, "no answer within 1 s")


def test_a_missing_program_is_no_traceback():
    answer = ask(Route("server", executable="/nonexistent/ssh"), ["true"], 5)
    assert (answer.reached, answer.said) == (
        False,
        "/nonexistent/ssh: No such file or directory",
    )

"""``skylog`` as a process: terminals, pipes, signals, and what --help imports."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.testing import Broker
from tests.integration.cli_support import Cli

RUN = [sys.executable, "-c", "from skylog.cli.main import main; main()"]
TIMEOUT = 60


@pytest.fixture(scope="module")
def cli() -> Iterator[Cli]:
    with Broker() as broker:
        yield Cli(broker)


def environment(cli: Cli | None = None) -> dict[str, str]:
    given = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    return given | ({"SKYLOG_BOOTSTRAP": cli.broker.bootstrap} if cli else {})


def start(cli: Cli, *arguments: str, **more: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*RUN, *arguments], env=environment(cli), **more)  # type: ignore[call-overload, no-any-return]


class Terminal:
    """A process with a terminal for its input and output."""

    def __init__(self, cli: Cli, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        self.process = start(cli, *arguments, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        self.text = ""

    def until(self, expected: str) -> None:
        """Read until the text appears or the process ends."""
        while expected not in self.text:
            try:
                data = os.read(self._master, 4096)
            except OSError:  # on Linux this means that the other side is closed
                data = b""
            assert data, f"{expected!r} did not come: {self.text}"
            self.text += data.decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        try:
            while data := os.read(self._master, 4096):
                self.text += data.decode(errors="replace")
        except OSError:
            pass
        os.close(self._master)
        return self.process.wait(TIMEOUT)


def test_help_is_quick_because_it_imports_little() -> None:
    code = (
        "import sys\nfrom skylog.cli.main import app\n"
        "try:\n    app(['--help'], prog_name='skylog')\nexcept SystemExit:\n    pass\n"
        "print(sorted(m for m in sys.modules if m.startswith(('skylog.', 'rich', 'uvloop'))))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(eval(out.stdout.splitlines()[-1]))
    assert imported == {
        "skylog.cli",
        "skylog.cli.errors",
        "skylog.cli.command_tree",
        "skylog.cli.main",
        "skylog.kernel",
        "skylog.kernel.errors",
        "skylog.kernel.limits",
    }
    assert "consume" in out.stdout


def test_a_terminal_gets_tables_and_questions(cli: Cli) -> None:
    cli.ok("topics", "create", "seen")
    terminal = Terminal(cli, "topics", "list")
    terminal.until("seen")
    assert terminal.end() == 0
    assert "─" in terminal.text

    asked = Terminal(cli, "topics", "delete", "seen")
    asked.until("[y/N]")
    asked.type("n\n")
    assert asked.end() == 1
    assert "seen" in cli.names()

    agreed = Terminal(cli, "topics", "delete", "seen")
    agreed.until("[y/N]")
    agreed.type("y\n")
    assert agreed.end() == 0
    assert "seen" not in cli.names()


def test_typing_records(cli: Cli) -> None:
    terminal = Terminal(cli, "produce", "typed")
    terminal.until("Type one record per line")
    terminal.type("first\n")
    terminal.type("second\n")
    terminal.type("\x04")
    terminal.until("2 records sent to typed")
    assert terminal.end() == 0


def test_control_characters_of_records_are_escaped(cli: Cli) -> None:
    cli.ok("produce", "steering", text="\x1b[31mred\n")
    terminal = Terminal(cli, "consume", "steering", "--from-beginning", "--max", "1")
    terminal.until("red")
    assert terminal.end() == 0
    assert "\\x1b[31mred" in terminal.text
    assert "\x1b[31mred" not in terminal.text


def test_ctrl_c_leaves_the_group_and_commits(cli: Cli) -> None:
    cli.ok("produce", "followed", text="one\ntwo\n")
    terminal = Terminal(cli, "consume", "followed", "--group", "follower", "--from-beginning")
    terminal.until("two")
    for command in (("groups", "delete", "follower"), _reset("follower", "followed")):
        assert "group follower has 1 member (NON_EMPTY_GROUP)" in cli.fails(*command)
    (described,) = cli.json("groups", "describe", "follower")
    assert described["members"][0]["partitions"] == ["followed-0"]
    assert "followed-0" in cli.ok("groups", "describe", "follower", "--members")

    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert "2 records read" in terminal.text
    (described,) = cli.json("groups", "describe", "follower")
    assert (described["state"], described["members"]) == ("Empty", [])
    assert [row["committed"] for row in described["partitions"]] == [2]


def _reset(group: str, topic: str) -> tuple[str, ...]:
    return ("groups", "reset-offsets", group, "--topic", topic, "--to", "earliest", "--execute")


def test_sigterm_shuts_down_cleanly(cli: Cli) -> None:
    cli.ok("produce", "ended", text="one\n")
    options = ("consume", "ended", "--group", "ender", "--from-beginning")
    process = start(cli, *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"one\n"
    process.terminate()
    out, error = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, error) == (143, b"", b"")
    (described,) = cli.json("groups", "describe", "ender")
    assert described["members"] == []


def test_a_closed_pipe_is_not_an_error(cli: Cli) -> None:
    cli.ok("produce", "piped", text=("x" * 1000 + "\n") * 3000)
    options = ("consume", "piped", "--from-beginning")
    process = start(cli, *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"x" * 1000 + b"\n"
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait(TIMEOUT) == 1
    assert error == b""


def test_the_welcome_names_commands_that_work(tmp_path: Path) -> None:
    overrides = {
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "http.listener": "",
        "log.dirs": str(tmp_path / "data"),
    }
    options = [
        text for name, value in overrides.items() for text in ("--override", f"{name}={value}")
    ]
    server = subprocess.Popen(
        [*RUN, "server", *options], env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        commands = []
        for line in server.stdout:
            commands += [line.strip()] if line.startswith("  ") else []
            if "Ctrl-C stops the node" in line:
                break
        create, produce, consume, show = commands
        program = tmp_path / "skylog"
        program.write_text(f'#!/bin/sh\nexec {RUN[0]} -c "{RUN[2]}" "$@"\n')
        program.chmod(0o755)
        path = environment() | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        for command in (create, produce):
            subprocess.run(command, shell=True, env=path, check=True, capture_output=True)
        out = subprocess.run(
            f"{consume} --max 1", shell=True, env=path, check=True, capture_output=True
        )
        assert out.stdout == b"hello, log\n"
        subprocess.run(show, shell=True, env=path, check=True, capture_output=True)
    finally:
        server.send_signal(signal.SIGINT)
        server.stdout.close()
        assert server.wait(TIMEOUT) == 0

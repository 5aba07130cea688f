"""Running ``skylog`` in this process against a broker in this process."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from skylog.cli.main import app
from skylog.testing import Broker


def invoke(*arguments: str, text: str | bytes | None = None, **environment: str) -> Result:
    """Run ``skylog`` with arguments; it must not raise anything but an exit."""
    result = CliRunner().invoke(app, list(arguments), input=text, env=dict(environment))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


class Cli:
    """``skylog`` for one broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def run(self, *arguments: str, text: str | bytes | None = None) -> Result:
        return invoke(*arguments, text=text, SKYLOG_BOOTSTRAP=self.broker.bootstrap)

    def ok(self, *arguments: str, text: str | bytes | None = None) -> str:
        """The output of a command that must succeed."""
        result = self.run(*arguments, text=text)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: str, text: str | bytes | None = None) -> Any:
        return json.loads(self.ok(*arguments, "--json", text=text))

    def fails(self, *arguments: str, code: int = 1, text: str | bytes | None = None) -> str:
        """The one line that a failing command prints, or its usage error."""
        result = self.run(*arguments, text=text)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        if code == 1:
            assert result.stderr.startswith("skylog: ")
            assert result.stderr.count("\n") == 1
        return result.stderr

    def names(self) -> set[str]:
        return {row["topic"] for row in self.json("topics", "list")}

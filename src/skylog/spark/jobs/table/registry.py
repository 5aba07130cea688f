"""Avro schemas by id: files ``<id>.avsc`` in a directory, or a schema registry."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Final

from skylog.kernel.errors import ConfigError
from skylog.spark.jobs.folder import Folder
from skylog.spark.jobs.table.avro import AvroSchema

_TIMEOUT_SECONDS: Final = 30
_BYTES_MAX: Final = 16 * 1024 * 1024
_NOT_FOUND: Final = 404


class Registry:
    """Looks up schemas, each once."""

    def __init__(self, where: str) -> None:
        self._is_http = where.startswith(("http://", "https://"))
        self._parts = urllib.parse.urlsplit(where.rstrip("/"))
        self._folder = None if self._is_http else Folder.at(where)
        # Without the user's password.
        shown = self._parts._replace(netloc=self._parts.netloc.rpartition("@")[2])
        self._where = shown.geturl() if self._is_http else where

    def find(self, number: int) -> AvroSchema | str:
        """The schema, or why rows with that id cannot be decoded; ConfigError if it cannot be
        found."""
        text = self._ask(number) if self._folder is None else _read(self._folder, number)
        if text is None:
            return f"Avro schema {number} is not in {self._where}"
        try:
            return AvroSchema.parse(text, f"schema {number} of {self._where}")
        except ConfigError as error:
            return str(error)

    def _ask(self, number: int) -> str | None:
        url = f"{self._where}/schemas/ids/{number}"
        request = urllib.request.Request(url)  # noqa: S310 - http or https
        request.add_header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
        if self._parts.username is not None:
            request.add_header("Authorization", _basic(self._parts))
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
                found = json.loads(answer.read(_BYTES_MAX))
            if found.get("schemaType", "AVRO") != "AVRO":
                return json.dumps({"type": f"not Avro but {found['schemaType']}"})
            return str(found["schema"])
        except urllib.error.HTTPError as error:
            if error.code == _NOT_FOUND:
                return None
            raise ConfigError(f"schema registry {url}: {error}") from None
        except (OSError, ValueError, KeyError, AttributeError) as error:
            raise ConfigError(f"schema registry {url}: {error}") from None


def _read(folder: Folder, number: int) -> str | None:
    try:
        found = folder.read(f"{number}.avsc")
        return None if found is None else found.decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"schema {number} cannot be read: {error}") from error


def _basic(parts: urllib.parse.SplitResult) -> str:
    user = urllib.parse.unquote(parts.username or "")
    password = urllib.parse.unquote(parts.password or "")
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

"""Errors of Spark, in one sentence."""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from skylog.kernel.errors import SkylogError

# The exceptions of calls to Spark; some of its errors are those of the bridge to Java.
SPARK_ERRORS: Final = (PySparkException, Py4JError)
# The last line of a traceback: the class with its modules, and the message.
_RAISED: Final = re.compile(r"^(?:[a-z_]\w*\.)+([A-Z]\w*): (.+)$", re.MULTILINE)
_JAVA: Final = re.compile(r"^: [\w.$]+: (.+)$", re.MULTILINE)
_CHARACTERS_MAX: Final = 2000


class JobError(SkylogError):
    """A job that failed; the message says why."""


def told(error: Exception) -> JobError:
    """The message of a task or of Spark itself, without its stack."""
    text = str(error)
    raised = [found for found in _RAISED.finditer(text) if not found[1].endswith("SparkException")]
    java = _JAVA.search(text)
    if raised:
        said = raised[-1][2]
    else:
        said = java[1] if java is not None else text.strip().partition("\n")[0]
    return JobError(said[:_CHARACTERS_MAX] or type(error).__name__)

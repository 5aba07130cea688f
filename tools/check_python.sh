#!/usr/bin/env bash
# Fails with a clear message before pip fails with an unclear one.
"${1:-python3}" - <<'PY' || exit 1
import sys
if sys.version_info < (3, 11):
    sys.exit(f"skylog needs Python 3.11 or newer; this is {sys.version.split()[0]}. "
             "Choose another with: make PYTHON=/path/to/python3.11 …")
PY

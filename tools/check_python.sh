#!/usr/bin/env bash
# Says clearly what is missing before pip says it unclearly.
"${1:-python3}" - <<'PY' || exit 1
import sys
if sys.version_info < (3, 11):
    sys.exit(f"skylog needs Python 3.11 or newer; this is {sys.version.split()[0]}. "
             "Choose another with: make PYTHON=/path/to/python3.11 …")
PY

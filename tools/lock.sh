#!/usr/bin/env bash
# Pin requirements with hashes and without index addresses, so that any mirror works.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
for name in requirements requirements-dev requirements-native; do
  "$bin/pip-compile" -q --generate-hashes --strip-extras --allow-unsafe --no-emit-index-url \
    --no-emit-trusted-host --no-emit-find-links --no-annotate --no-header \
    -o "$name.txt" "$name.in"
done

"""``skylog tiered``."""

from __future__ import annotations

from skylog.cli.command_tree import examples, new_app
from skylog.cli.tiered_describe import regions, segments

app = new_app(group=True)
app.command(
    "segments",
    epilog=examples("skylog tiered segments clicks", "skylog tiered segments clicks -p 3 --json"),
)(segments)
app.command(
    "regions",
    epilog=examples("skylog tiered regions clicks", "skylog tiered regions clicks -b broker1:9092"),
)(regions)

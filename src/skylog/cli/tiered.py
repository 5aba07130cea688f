"""``skylog tiered``."""

from __future__ import annotations

from skylog.cli.command_tree import examples, new_app
from skylog.cli.tiered_check import orphans, verify
from skylog.cli.tiered_describe import regions, segments
from skylog.cli.tiered_dump import dump
from skylog.cli.tiered_rebuild import rebuild

app = new_app(group=True)
app.command(
    "segments",
    epilog=examples("skylog tiered segments clicks", "skylog tiered segments clicks -p 3 --json"),
)(segments)
app.command(
    "regions",
    epilog=examples("skylog tiered regions clicks", "skylog tiered regions clicks -b broker1:9092"),
)(regions)
app.command(
    "dump",
    epilog=examples(
        "skylog tiered dump 00000000000000000000-6Ftd4GwhQ8WxwQTJOH0mKw.rsm-manifest",
        "skylog tiered dump clicks-…/0/0000…-6Ftd….indexes --storage-url s3://bucket/prefix",
    ),
)(dump)
app.command(
    "verify",
    epilog=examples(
        "skylog tiered verify",
        "skylog tiered verify clicks --quick",
        "skylog tiered verify --server-config config/server.properties --json",
    ),
)(verify)
app.command(
    "orphans",
    epilog=examples(
        "skylog tiered orphans",
        "skylog tiered orphans --delete --storage-url s3://bucket/prefix",
        "skylog tiered orphans --release",
    ),
)(orphans)
app.command(
    "rebuild",
    epilog=examples(
        "skylog tiered rebuild --from s3://bucket/prefix/tiered --dry-run",
        "skylog tiered rebuild --from file:///mnt/objects -b broker1:9092",
    ),
)(rebuild)

"""``skylog produce``."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from skylog.cli.command_tree import examples, new_app
from skylog.cli.connect import API_TIMEOUT_MS, call, require_topic
from skylog.cli.errors import CommandError, counted
from skylog.cli.lines import RecordLine, open_input, parse_line, read_lines
from skylog.cli.options import Bootstrap, ClientConfig, Json, TopicName, parse_pairs
from skylog.cli.output import print_json, say
from skylog.cli.sending import Sender
from skylog.client.cluster import Cluster
from skylog.client.producer import Producer, ProducerSettings
from skylog.kernel.progress import Progress
from skylog.wire.batch import Compression

app = new_app()

# A broker's default maximum request size; the topic decides how large a record may be.
REQUEST_BYTES_MAX: Final = 100 * 1024 * 1024
# The send buffer: after Ctrl-C it is still sent, which must not take long.
BUFFER_BYTES: Final = 8 * 1024 * 1024


class Codec(StrEnum):
    """Codec names, as in Kafka's producer."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    """Which replicas must have stored a record before it counts as sent."""

    ALL = "all"
    LEADER = "1"
    NONE = "0"


Compressed = Annotated[Codec, typer.Option("--compression", help="Compression of batches.")]
Acknowledged = Annotated[
    Acks,
    typer.Option("--acks", help="Wait for all in-sync replicas, for the leader, or not at all."),
]
Idempotent = Annotated[
    bool | None,
    typer.Option(
        "--idempotent/--no-idempotent",
        help="Number batches, so that resends are stored only once; needs --acks all. On by "
        "default with --acks all.",
    ),
]
Linger = Annotated[
    int, typer.Option("--linger-ms", min=0, help="How long to wait for a batch to fill.")
]
BatchBytes = Annotated[int, typer.Option("--batch-bytes", min=1, help="Size of a batch.")]


def producer_settings(
    acks: Acks, codec: Codec, idempotent: bool | None, linger_ms: int, batch_bytes: int
) -> ProducerSettings:
    """From the options; a usage error if they contradict each other."""
    if idempotent and acks is not Acks.ALL:
        raise typer.BadParameter("--idempotent needs --acks all")
    return ProducerSettings(
        acks=-1 if acks is Acks.ALL else int(acks),
        linger_ms=linger_ms,
        batch_bytes=batch_bytes,
        buffer_bytes=BUFFER_BYTES,
        request_bytes_max=REQUEST_BYTES_MAX,
        delivery_timeout_ms=API_TIMEOUT_MS,
        compression=Compression[codec.name],
        idempotent=acks is Acks.ALL if idempotent is None else idempotent,
    )


File = Annotated[
    Path | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Read lines from this file instead of stdin."
    ),
]
KeySeparator = Annotated[
    str | None,
    typer.Option(
        "--key-separator",
        "-k",
        metavar="TEXT",
        help="Separator between key and value in a line; \\t is a tab (default: no keys).",
    ),
]
NullMarker = Annotated[
    str | None,
    typer.Option("--null", metavar="TEXT", help="A key or value equal to this text is null."),
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="NAME=VALUE", help="Header of all records; repeatable."),
]
Partition = Annotated[
    int | None, typer.Option("--partition", "-p", min=0, help="Send all records to this partition.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no messages on stderr.")]


@app.command(
    epilog=examples(
        "echo 'hello, log' | skylog produce hello",
        "skylog produce orders --key-separator : --file orders.txt --compression zstd",
        "skylog produce orders --header source=cli --partition 0 < lines.txt",
    )
)
def produce(
    topic: TopicName,
    file: File = None,
    key_separator: KeySeparator = None,
    null_marker: NullMarker = None,
    header: Headers = None,
    partition: Partition = None,
    compression: Compressed = Codec.NONE,
    acks: Acknowledged = Acks.ALL,
    idempotent: Idempotent = None,
    linger_ms: Linger = 5,
    batch_bytes: BatchBytes = 256 * 1024,
    quiet: Quiet = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Send lines from standard input or a file to a topic, one record each.

    Records with equal keys go to the same partition, as with Kafka's own producer. The topic is
    created if it does not exist and the broker allows that.
    """
    settings = producer_settings(acks, compression, idempotent, linger_ms, batch_bytes)
    headers = [(k, v.encode()) for k, v in parse_pairs(header or (), "--header").items()]
    line_of = RecordLine(_separator(key_separator), (null_marker or "").encode() or None)
    try:
        source = open_input(file)
    except OSError as error:
        raise CommandError(f"--file {file}: {error.strerror}") from None

    async def work(cluster: Cluster) -> Sender:
        await require_topic(cluster, topic, allow_create=True)
        if source.interactive and not quiet:
            say(f"Type one record per line for {topic}; Ctrl-D stops.")
        async with Producer(cluster, settings) as producer:
            sender = Sender(producer, topic, partition, headers)
            with Progress("sent", None, quiet=quiet or source.interactive) as progress:
                async for line in read_lines(source):
                    await sender.send(*parse_line(line_of, line, sender.sent + 1))
                    progress.advance(sender.sent)
            await producer.flush()
        sender.raise_failure()
        return sender

    with source:
        sent = call(work, bootstrap, client_config)
    if json:
        print_json({"topic": topic, "records": sent.stored, "partitions": sent.by_partition()})
    elif not quiet:
        where = ", ".join(
            f"partition {row['partition']} up to offset {row['last_offset']}"
            for row in sent.by_partition()
        )
        say(f"{counted(sent.stored, 'record')} sent to {topic}" + (f": {where}" if where else ""))
    sys.stdout.flush()


def _separator(text: str | None) -> bytes | None:
    if text is None:
        return None
    if not text:
        raise typer.BadParameter("is empty", param_hint="--key-separator")
    return text.replace("\\t", "\t").encode()

"""``skylog produce``."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from skylog.cli.connect import API_TIMEOUT_MS, call, require_topic
from skylog.cli.errors import CommandError, counted
from skylog.cli.group import examples, new_app
from skylog.cli.lines import RecordLine, open_input, parse_line, read_lines
from skylog.cli.options import Bootstrap, ClientConfig, Json, TopicName, parse_pairs
from skylog.cli.output import print_json, say
from skylog.cli.sending import Sender
from skylog.client.cluster import Cluster
from skylog.client.producer import Producer, ProducerSettings
from skylog.kernel.progress import Progress
from skylog.wire.batch import Compression

app = new_app()

# What a broker takes at most unless told otherwise; how large a record may be, the topic decides.
REQUEST_BYTES_MAX: Final = 100 * 1024 * 1024
# What waits to be sent: after Ctrl-C it still is, and nobody likes to wait for long.
BUFFER_BYTES: Final = 8 * 1024 * 1024


class Codec(StrEnum):
    """Names of codecs as Kafka's producer has them."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    """Who must have stored a record before it counts as sent."""

    ALL = "all"
    LEADER = "1"
    NOBODY = "0"


Compressed = Annotated[Codec, typer.Option("--compression", help="How batches are compressed.")]
Acknowledged = Annotated[
    Acks,
    typer.Option("--acks", help="Wait for all replicas in sync, for the leader, for nobody."),
]
Idempotent = Annotated[
    bool | None,
    typer.Option(
        "--idempotent/--no-idempotent",
        help="Number batches, so that what is sent twice is stored once; needs --acks all. "
        "On with --acks all unless you say otherwise.",
    ),
]
Linger = Annotated[
    int, typer.Option("--linger-ms", min=0, help="Wait so long for a batch to fill.")
]
BatchBytes = Annotated[int, typer.Option("--batch-bytes", min=1, help="Send batches this large.")]


def producer_settings(
    acks: Acks, codec: Codec, idempotent: bool | None, linger_ms: int, batch_bytes: int
) -> ProducerSettings:
    """From the options; a usage error where they contradict each other."""
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
    typer.Option("--file", "-f", metavar="FILE", help="Read lines from here, not from stdin."),
]
KeySeparator = Annotated[
    str | None,
    typer.Option(
        "--key-separator",
        "-k",
        metavar="TEXT",
        help="What stands between key and value in a line; \\t is a tab. No keys without.",
    ),
]
NullMarker = Annotated[
    str | None,
    typer.Option("--null", metavar="TEXT", help="A key or value that is this text is null."),
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="NAME=VALUE", help="For all records; repeatable."),
]
Partition = Annotated[
    int | None, typer.Option("--partition", "-p", min=0, help="Send all to this partition.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No words on stderr.")]


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
            say(f"Type one record per line for {topic}; Ctrl-D ends.")
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

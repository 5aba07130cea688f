"""From produced batches to committed objects."""

from skylog.diskless.writer.plan import WriterSettings
from skylog.diskless.writer.writer import AppendResult, DisklessWriter, Item, Request

__all__ = ["AppendResult", "DisklessWriter", "Item", "Request", "WriterSettings"]

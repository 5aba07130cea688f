"""From offsets to record batches."""

from skylog.diskless.reader.cache import ObjectCache
from skylog.diskless.reader.reader import DisklessReader, ReaderSettings, ReadRequest, ReadResult

__all__ = ["DisklessReader", "ObjectCache", "ReadRequest", "ReadResult", "ReaderSettings"]

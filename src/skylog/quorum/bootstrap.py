"""The first records of a new cluster, as chosen by ``kafka-storage format`` of Kafka 4.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from skylog.replicated.log import KeyValue
from skylog.wire.messages.feature_level_record import FeatureLevelRecord
from skylog.wire.metadata_records import encode_metadata
from skylog.wire.schema import Message

METADATA_VERSION: Final = "metadata.version"
METADATA_VERSION_4_3_IV0: Final = 30
# kraft.version is not among them: it is a control record of the log itself.
DEFAULT_FEATURES: Final[Mapping[str, int]] = {
    METADATA_VERSION: METADATA_VERSION_4_3_IV0,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def bootstrap_records(
    features: Mapping[str, int] = DEFAULT_FEATURES, extra: Sequence[Message] = ()
) -> list[KeyValue]:
    """The feature levels, the metadata version first, and other initial records (SCRAM users)."""
    names = sorted(features, key=lambda name: (name != METADATA_VERSION, name))
    levels = [
        FeatureLevelRecord(name=name, feature_level=features[name])
        for name in names
        if features[name] > 0
    ]
    return [(None, encode_metadata(record)) for record in (*levels, *extra)]

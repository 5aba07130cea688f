"""Streaming reads: micro-batches between offsets that Spark stores in its checkpoint.

When Spark repeats the first micro-batch after a crash it asks for the initial offset again, and by
then "latest" has moved on. So a query that starts at the latest offsets begins with an empty
micro-batch there: its end, which Spark stores, is where the next one starts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from skylog.client.metadata import TopicPartition
from skylog.client.offsets import LATEST
from skylog.kernel.clock import Clock, SystemClock
from skylog.kernel.errors import ConfigError
from skylog.spark.batch import bounds_in, input_partitions, read_task
from skylog.spark.driver import Driver
from skylog.spark.errors import ReadError, one_sentence
from skylog.spark.options import ReadOptions
from skylog.spark.planning import plan_read, report
from skylog.spark.positions import AtOffsets, Everywhere, Offsets, from_json, to_json
from skylog.spark.quirks import SentToWorkers
from skylog.spark.ranges import (
    Log,
    changes_of_partitions,
    resolve_start,
    stream_ranges,
    times_asked,
)
from skylog.spark.rate import TriggerDelay, available, rate_limit

_log = logging.getLogger("skylog.spark")
_Json = dict[str, Any]


class StreamReader(SentToWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Exists on the driver while the query runs; only ``read`` runs on executors."""

    def __init__(self, options: ReadOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._initial: Offsets | None = None
        self._is_pinned = True
        self._topic_ids: dict[str, str] = {}
        self._latest: Offsets | None = None
        self._target: Offsets | None = None
        self._is_available_now = False
        self._published: Offsets | None = None
        self._delay = TriggerDelay(
            options.min_offsets_per_trigger or 0, options.max_trigger_delay_ms
        )

    # Where a query starts -----------------------------------------------------------------

    @one_sentence
    def initialOffset(self) -> _Json:  # noqa: N802 - Spark's name
        if self._initial is None:
            self._initial = self._find_initial()
        return to_json(self._initial)

    def _find_initial(self) -> Offsets:
        driver, options = Driver(self._options), self._options
        logs = driver.logs(driver.partitions())
        at_times = driver.at_times(times_asked(options.starting, logs, "starting"))
        found = resolve_start(
            options.starting, logs, at_times, latest_if_no_match=options.latest_if_no_match
        )
        for key, offset in found.items():
            if offset > logs[key].latest:
                raise ConfigError(
                    f"option startingOffsets has {offset} for {key}, which ends at"
                    f" {logs[key].latest}"
                )
        self._is_pinned = not _begins_at_latest(options, at_times)
        return found

    # How far a micro-batch goes -----------------------------------------------------------

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._is_available_now = True

    def reportLatestOffset(self) -> _Json | None:  # noqa: N802 - Spark's name
        return None if self._latest is None else to_json(self._latest)

    @one_sentence
    def latestOffset(self, start: _Json, limit: ReadLimit) -> _Json:  # noqa: N802 - Spark's name
        began = from_json(start)
        latest = self._find_latest(began)
        # Spark calls this only when everything before ``start`` is done, even if nothing is new.
        self._publish({key: offset for key, offset in began.items() if key in latest})
        if not self._is_pinned and began == self._initial:
            self._is_pinned = True
            return start
        if isinstance(limit, ReadAllAvailable):
            return to_json(latest)
        return to_json(self._limited(began, latest))

    def _find_latest(self, began: Offsets) -> Offsets:
        if self._target is None:
            driver = Driver(self._options)
            found = driver.partitions(began)
            losses = self._topics_made_anew(found)
            latest = driver.latest(found)
            losses += changes_of_partitions(began, latest)
            report(losses, fail=self._options.fail_on_data_loss)
            self._latest = latest
            if self._is_available_now:
                self._target = latest
            return latest
        return self._target

    def _topics_made_anew(self, found: Mapping[TopicPartition, str]) -> list[str]:
        """The checkpoint has only names, so this is noticed only while the query runs."""
        ids = {key.topic: topic_id for key, topic_id in found.items()}
        anew = [topic for topic, was in self._topic_ids.items() if ids.get(topic, was) != was]
        self._topic_ids |= ids
        return [f"topic {topic} was deleted and created again" for topic in anew]

    def _limited(self, began: Offsets, latest: Offsets) -> Offsets:
        added = latest.keys() - began.keys()
        earliest = Driver(self._options).earliest(added)
        least = self._options.min_offsets_per_trigger
        # With "available now", too little data would be waited for without end.
        if least is not None and not self._is_available_now:
            waiting = available(began, latest, earliest)
            if self._delay.holds_back(waiting, self._clock.now_ms()):
                return began
        most = self._options.max_offsets_per_trigger
        return latest if most is None else rate_limit(most, began, latest, earliest)

    # What a micro-batch reads -------------------------------------------------------------

    @one_sentence
    def partitions(self, start: _Json, end: _Json) -> Sequence[InputPartition]:
        began, until = from_json(start), from_json(end)
        if began == until:
            return []
        driver = Driver(self._options)
        present = driver.partitions({**began, **until})
        logs: dict[TopicPartition, Log] = driver.logs(until.keys() & present.keys())
        found = stream_ranges(began, until, logs, is_first=began == self._initial)
        report(found.losses, fail=self._options.fail_on_data_loss)
        bounds = bounds_in(self._options)
        planned = plan_read(driver, self._options, found.ranges, min_timestamp=bounds.timestamp_min)
        return input_partitions(planned, self._options, bounds) if planned.tasks else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition)

    # Progress -----------------------------------------------------------------------------

    def _publish(self, done: Offsets) -> None:
        """Show the progress as a consumer group. Invalid settings fail at once, later errors are
        logged."""
        group = self._options.publish_group_id
        if group is None or done == self._published or not done:
            return
        try:
            Driver(self._options).publish(group, done)
        except ReadError as error:
            if self._published is None:
                raise
            _log.warning("progress is not published: %s", error)
            return
        self._published = done


def _begins_at_latest(options: ReadOptions, at_times: Offsets) -> bool:
    match options.starting:
        case Everywhere(offset):
            return offset == LATEST
        case AtOffsets(offsets):
            return LATEST in offsets.values()
        case _:
            return -1 in at_times.values()

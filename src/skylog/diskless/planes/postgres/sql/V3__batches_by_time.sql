-- The largest timestamp of a partition up to each of its batches. It grows with the offset, so the
-- first batch at or after a time is found by an index, though timestamps go up and down.
ALTER TABLE logs ADD COLUMN max_seen_ms bigint NOT NULL DEFAULT -1;
ALTER TABLE batches ADD COLUMN max_seen_ms bigint;

UPDATE batches SET max_seen_ms = seen.max_ms
FROM (
    SELECT batch_id,
        max(effective_timestamp) OVER (PARTITION BY topic_id, partition ORDER BY last_offset)
            AS max_ms
    FROM batches
) seen
WHERE batches.batch_id = seen.batch_id;
UPDATE logs SET max_seen_ms = seen.max_ms
FROM (
    SELECT topic_id, partition, max(max_seen_ms) AS max_ms FROM batches GROUP BY 1, 2
) seen
WHERE logs.topic_id = seen.topic_id AND logs.partition = seen.partition;

ALTER TABLE batches ALTER COLUMN max_seen_ms SET NOT NULL;
CREATE INDEX batches_by_time ON batches (topic_id, partition, max_seen_ms, last_offset);

-- The first batch that is not older than a time. The planner thinks that few rows are as young as
-- the youngest, and would look at all of them rather than follow the order of the index.
CREATE FUNCTION batch_at_time(
    wanted_topic_id uuid, wanted_partition integer, from_offset bigint, not_before_ms bigint
) RETURNS SETOF batches
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off
AS $$
DECLARE
    since_offset bigint;
BEGIN
    SELECT b.last_offset INTO since_offset FROM batches b
        WHERE b.topic_id = wanted_topic_id AND b.partition = wanted_partition
            AND b.max_seen_ms >= not_before_ms
        ORDER BY b.max_seen_ms, b.last_offset LIMIT 1;
    IF FOUND THEN  -- there, or behind it when its batch is gone
        RETURN QUERY SELECT b.* FROM batches b
            WHERE b.topic_id = wanted_topic_id AND b.partition = wanted_partition
                AND b.last_offset >= greatest(since_offset, from_offset)
                AND b.effective_timestamp >= not_before_ms
            ORDER BY b.last_offset LIMIT 1;
    END IF;
END $$;

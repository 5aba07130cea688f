-- As in V2, but a batch is granted only if it fits into the limits, as Kafka does with its logs; the
-- first of the whole find is granted in any case.
CREATE OR REPLACE FUNCTION find_batches(
    topic_ids uuid[], partitions integer[], offsets bigint[], max_bytes bigint[],
    fetch_max_bytes bigint, max_batches integer
) RETURNS TABLE (
    request integer, log_start_offset bigint, high_watermark bigint, wal_start_offset bigint,
    batch_id bigint, object_key varchar, byte_offset integer, byte_size integer,
    base_offset bigint, last_offset bigint, log_append_timestamp bigint,
    batch_max_timestamp bigint, timestamp_type smallint, magic smallint
) LANGUAGE plpgsql STABLE SET enable_sort = off SET enable_bitmapscan = off AS $$
DECLARE
    log logs%ROWTYPE;
    batch record;
    granted boolean := false;
    budget bigint := fetch_max_bytes;
    partition_budget bigint;
    batches_left integer;
BEGIN
    FOR i IN 1 .. coalesce(array_length(topic_ids, 1), 0) LOOP
        SELECT * INTO log FROM logs
            WHERE logs.topic_id = topic_ids[i] AND logs.partition = partitions[i];
        CONTINUE WHEN NOT FOUND;
        request := i - 1;
        log_start_offset := log.log_start_offset;
        high_watermark := log.high_watermark;
        wal_start_offset := log.wal_start_offset;
        batch_id := NULL;
        RETURN NEXT;
        partition_budget := max_bytes[i];
        batches_left := max_batches;
        CONTINUE WHEN offsets[i] >= log.high_watermark
            OR offsets[i] < greatest(log.log_start_offset, log.wal_start_offset)
            OR granted AND (budget <= 0 OR partition_budget <= 0);
        FOR batch IN
            SELECT b.*, (SELECT f.object_key FROM files f WHERE f.file_id = b.file_id) AS file_key
            FROM batches b
            WHERE b.topic_id = topic_ids[i] AND b.partition = partitions[i]
                AND b.last_offset >= offsets[i]
            ORDER BY b.last_offset
        LOOP
            EXIT WHEN granted AND batch.byte_size > least(budget, partition_budget);
            granted := true;
            batch_id := batch.batch_id;
            object_key := batch.file_key;
            byte_offset := batch.byte_offset;
            byte_size := batch.byte_size;
            base_offset := batch.base_offset;
            last_offset := batch.last_offset;
            log_append_timestamp := batch.log_append_timestamp;
            batch_max_timestamp := batch.batch_max_timestamp;
            timestamp_type := batch.timestamp_type;
            magic := batch.magic;
            RETURN NEXT;
            budget := budget - batch.byte_size;
            partition_budget := partition_budget - batch.byte_size;
            batches_left := batches_left - 1;
            EXIT WHEN batches_left = 0;
        END LOOP;
    END LOOP;
END $$;

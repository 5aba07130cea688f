-- A row per partition: the one counter of its offsets. Commits lock it, so it changes often.
CREATE TABLE logs (
    topic_id         uuid         NOT NULL,
    partition        integer      NOT NULL CHECK (partition >= 0),
    topic_name       varchar(249) NOT NULL,
    log_start_offset bigint       NOT NULL DEFAULT 0,
    high_watermark   bigint       NOT NULL DEFAULT 0,
    byte_size        bigint       NOT NULL DEFAULT 0 CHECK (byte_size >= 0),
    wal_start_offset bigint       NOT NULL DEFAULT 0,
    PRIMARY KEY (topic_id, partition),
    CHECK (0 <= log_start_offset AND log_start_offset <= high_watermark),
    CHECK (0 <= wal_start_offset AND wal_start_offset <= high_watermark)
) WITH (fillfactor = 70);

-- A row per WAL object until its deletion is confirmed; answers is what its commit was told.
CREATE TABLE files (
    file_id            bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    object_key         varchar(512) COLLATE "C" NOT NULL UNIQUE,
    format             smallint     NOT NULL,
    size               bigint       NOT NULL,
    uploader_broker_id integer      NOT NULL,
    committed_ms       bigint       NOT NULL,
    marked_ms          bigint,
    answers            bytea        NOT NULL
);
CREATE INDEX files_to_delete ON files (marked_ms, object_key) WHERE marked_ms IS NOT NULL;
CREATE INDEX files_by_age ON files (committed_ms) WHERE marked_ms IS NULL;

CREATE TABLE batches (
    batch_id             bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_id             uuid     NOT NULL,
    partition            integer  NOT NULL,
    base_offset          bigint   NOT NULL,
    last_offset          bigint   NOT NULL CHECK (last_offset >= base_offset),
    file_id              bigint   NOT NULL REFERENCES files,
    byte_offset          integer  NOT NULL,
    byte_size            integer  NOT NULL CHECK (byte_size > 0),
    log_append_timestamp bigint   NOT NULL,
    batch_max_timestamp  bigint   NOT NULL,
    timestamp_type       smallint NOT NULL,
    magic                smallint NOT NULL,
    -- What ListOffsets and retention go by.
    effective_timestamp  bigint   NOT NULL GENERATED ALWAYS AS (
        CASE timestamp_type WHEN 1 THEN log_append_timestamp ELSE batch_max_timestamp END
    ) STORED
);
CREATE UNIQUE INDEX batches_by_offset ON batches (topic_id, partition, last_offset)
    INCLUDE (base_offset, byte_size, effective_timestamp);
CREATE INDEX batches_by_file ON batches (file_id);

-- A row per idempotent producer of a partition, its last batches as arrays, oldest first.
CREATE TABLE producers (
    topic_id              uuid      NOT NULL,
    partition             integer   NOT NULL,
    producer_id           bigint    NOT NULL,
    producer_epoch        smallint  NOT NULL,
    base_sequences        integer[] NOT NULL,
    last_sequences        integer[] NOT NULL,
    assigned_offsets      bigint[]  NOT NULL,
    log_append_timestamps bigint[]  NOT NULL,
    last_ms               bigint    NOT NULL,
    PRIMARY KEY (topic_id, partition, producer_id)
) WITH (fillfactor = 70);

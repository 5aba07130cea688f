-- A row per pin of a staged object. Once the object is committed the pin has its size, format and
-- answers, which it keeps after the file's own row is gone.
CREATE TABLE pins (
    object_key varchar(512) COLLATE "C" PRIMARY KEY,
    writer_id  varchar(255) NOT NULL,
    epoch      bigint       NOT NULL,
    expires_ms bigint       NOT NULL,
    size       bigint,
    format     smallint,
    answers    bytea
);
CREATE INDEX pins_by_expiry ON pins (expires_ms);

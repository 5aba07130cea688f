"""All limits: names say what is limited, and end with the unit and MAX."""

from __future__ import annotations

from typing import Final

# Replicated state machines: callers that wait for the high watermark or for a later response.
RUNTIME_PENDING_REQUESTS_MAX: Final = 20_000

# The metadata log, as in Kafka: its largest batch, and the batches of a snapshot.
METADATA_BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
# A quorum-state or meta.properties file is a few lines; a larger file is not one.
QUORUM_FILE_BYTES_MAX: Final = 64 * 1024
# Replicas of the metadata log that its leader tracks.
QUORUM_OBSERVERS_MAX: Final = 10_000

# Connections. An unauthenticated client gets little memory and little time.
UNAUTHENTICATED_REQUEST_BYTES_MAX: Final = 512 * 1024
HANDSHAKE_SECONDS_MAX: Final = 30.0
# Before the TLS handshake completes, a connection is not even counted.
TLS_HANDSHAKE_SECONDS_MAX: Final = 10.0
# An unread response holds memory; after this long without progress the connection is closed.
WRITE_STALL_SECONDS_MAX: Final = 60.0
# A connection to /metrics and /health is closed after this long, whatever its client does.
HTTP_CONNECTION_SECONDS_MAX: Final = 30.0
# Requests read ahead of the one being handled; beyond that the broker stops reading
# (back-pressure).
CONNECTION_REQUESTS_WAITING_MAX: Final = 64
CONNECTION_WAITING_BYTES_MAX: Final = 1024 * 1024
# Requests of one connection that are handled before other connections get a turn.
CONNECTION_REQUESTS_PER_TURN_MAX: Final = 16
# Elements of one request that are processed before other requests get a turn.
ANSWERS_PER_TURN: Final = 200
CONFIGS_DESCRIBED_PER_TURN: Final = 20
# What all connections together may hold in memory: requests that are being received, queued or
# handled (unless queued.max.request.bytes is set), and responses that clients have not read. Beyond
# that, the connection that has held memory longest is closed.
REQUEST_BYTES_IN_FLIGHT_MAX: Final = 512 * 1024 * 1024
ANSWER_BYTES_IN_FLIGHT_MAX: Final = 512 * 1024 * 1024
# Less than this on one connection is not counted.
IN_FLIGHT_BYTES_COUNTED_MIN: Final = 64 * 1024
# When many responses are unread, a fetch returns no more than this, but at least one batch.
FETCH_BYTES_UNDER_PRESSURE: Final = 1024 * 1024
# How long a shutdown waits for clients to read the responses already written.
SHUTDOWN_FLUSH_SECONDS_MAX: Final = 1.0
# How long it waits for requests that are being handled.
SHUTDOWN_REQUESTS_SECONDS_MAX: Final = 10.0
# How long a broker tries to hand its partitions over before it goes.
LEAVE_SECONDS_MAX: Final = 300.0
# How long one step of a shutdown may take before it is given up: leaving, which counts its own time
# too; closing logs, which writes what is in memory; and any other.
STOP_LEAVE_SECONDS_MAX: Final = LEAVE_SECONDS_MAX + 30.0
STOP_LOGS_SECONDS_MAX: Final = 300.0
STOP_STEP_SECONDS_MAX: Final = 30.0
# How long a task that was cancelled may take to end.
CANCELLED_SECONDS_MAX: Final = 5.0
# How long threads may take to finish their work.
THREADS_END_SECONDS_MAX: Final = 10.0
# After so long a process that shuts down is ended whatever it waits for; and after so long, when
# all is closed, though a task or a thread is left.
SHUTDOWN_SECONDS_MAX: Final = 900.0
EXIT_SECONDS_MAX: Final = 5.0
# How long a starting broker waits for its coordinators before it reports that it is up.
START_LOADING_SECONDS_MAX: Final = 30.0
# How long a producer waits for a block of ids before it is told to retry, perhaps elsewhere.
PRODUCER_IDS_WAIT_SECONDS_MAX: Final = 1.0
# How long a stopping broker waits for the commits of diskless files.
DISKLESS_CLOSE_SECONDS_MAX: Final = 5.0
# Produce requests of one connection whose batches are being uploaded; their bytes are limited by
# diskless.produce.inflight.max.bytes. A low limit would make small files out of small requests, and
# a producer of a thousand requests a second would wait longer than an upload and its commit.
CONNECTION_REQUESTS_OVERLAPPING_MAX: Final = 2048
# Of the process's open files, those reserved for neither logs nor connections.
OPEN_FILES_RESERVED: Final = 32
LISTEN_BACKLOG: Final = 512

# Log lines: values may come from clients.
LOG_FIELD_CHARACTERS_MAX: Final = 2_000
LOG_TRACEBACK_CHARACTERS_MAX: Final = 20_000
# Lines of one kind per second, because clients can cause them; only the number of further ones is
# logged.
LOG_LINES_PER_SECOND_MAX: Final = 100
# Refused requests logged per second; only the number of further ones is logged.
REFUSALS_LOGGED_PER_SECOND_MAX: Final = 50

# Settings: a larger file or value is not a configuration.
SETTINGS_FILE_BYTES_MAX: Final = 1024 * 1024
SETTING_VALUE_CHARACTERS_MAX: Final = 64 * 1024

# Quotas: clients measured at the same time; the one that was idle longest is dropped first.
QUOTA_MEASUREMENTS_MAX: Final = 20_000
# Addresses whose rate of new connections is measured at the same time.
CONNECTION_RATE_ADDRESSES_MAX: Final = 20_000
# PEM files and values: a chain and a key are a few kilobytes.
PEM_BYTES_MAX: Final = 1024 * 1024
JAAS_CHARACTERS_MAX: Final = 1024 * 1024

# Decompressed size of the records of one batch during validation. Kafka has no such limit because
# it decodes one record at a time.
RECORDS_DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
# How many such batches are validated at the same time: bounds the memory and time that
# decompression bombs can take.
VALIDATIONS_AT_ONCE_MAX: Final = 2
# Each member of a gzip stream costs a copy of the rest; producers write one.
GZIP_MEMBERS_MAX: Final = 1024

# The error message to a client: it may quote the client, and a string has at most 32,767 bytes.
ERROR_MESSAGE_CHARACTERS_MAX: Final = 8_000

# Wire: elements that take no bytes, whose count nothing else limits.
WIRE_EMPTY_ELEMENTS_MAX: Final = 10_000
# Topics, partitions, groups and other elements that one request may list in total.
WIRE_REQUEST_ELEMENTS_MAX: Final = 50_000
# Records up to this size are copied into the surrounding bytes: one write is cheaper than three.
WIRE_RECORDS_JOINED_BYTES_MAX: Final = 1024

# The controller, as in Kafka: records that one request may write and partitions it may create.
CONTROLLER_RECORDS_PER_REQUEST_MAX: Final = 10_000
CONTROLLER_PARTITIONS_PER_REQUEST_MAX: Final = 10_000
# Log lines that one check of replica placement may write.
CONTROLLER_NOTES_MAX: Final = 100
# A config value is a Kafka string; appending to a list must not exceed it.
CONFIG_VALUE_CHARACTERS_MAX: Final = 32_767
# Partitions that a broker creates before it answers for a metadata change, and, if there are more,
# how many it creates before other work gets a turn.
PARTITIONS_MADE_AT_ONCE_MAX: Final = 200
PARTITIONS_MADE_PER_TURN: Final = 10
# Topics that one Metadata request may create; it may request the others again.
TOPICS_CREATED_ON_DEMAND_MAX: Final = 100
TOPIC_NAME_CHARACTERS_MAX: Final = 249

# Local logs: segment files that may be open at the same time, whatever the number of partitions.
LOG_OPEN_FILES_MAX: Final = 4096
# The largest batch that a search by timestamp decodes on the event loop.
LOG_INLINE_DECODE_BYTES_MAX: Final = 32 * 1024
# Logs that are compacted at the same time at most, whatever log.cleaner.threads says.
LOG_CLEANER_THREADS_MAX: Final = 16
# Producers per partition whose first transactional batch waits for verification by the coordinator.
TRANSACTION_GUARDS_PER_PARTITION_MAX: Final = 10_000
# Text files of a log directory (checkpoints); 10,000 partitions take about 1 MiB.
LOG_CHECKPOINT_BYTES_MAX: Final = 256 * 1024 * 1024
# Replicas that a fetcher sets up from the object store at once.
TIER_REBUILDS_MAX: Final = 8

# Metadata of one member in JoinGroup, and of all members of the groups of one offsets partition. A
# group's record must also fit into a batch.
GROUP_MEMBER_METADATA_BYTES_MAX: Final = 4 * 1024 * 1024
GROUP_METADATA_BYTES_MAX: Final = 64 * 1024 * 1024
# Members of one group that were given an id and have not yet rejoined with it.
GROUP_PENDING_MEMBERS_MAX: Final = 2_000
# A regular-expression subscription: its length, and the memory to compile it.
GROUP_REGEX_CHARACTERS_MAX: Final = 1_024
GROUP_REGEX_MEMORY_BYTES: Final = 1024 * 1024
# Different regular expressions of one group.
GROUP_REGEXES_MAX: Final = 100
# Topic names matched with a group's expressions before other work gets a turn.
GROUP_REGEX_NAMES_PER_TURN: Final = 500
# One part of a pass over all groups (expiry, deleted topics), so that it does not block other work.
GROUP_PASS_GROUPS_MAX: Final = 1_000
GROUP_PASS_RECORDS_BYTES_MAX: Final = 512 * 1024

# Transactions: markers sent to a node in one request, and ids checked before other work gets a
# turn.
TRANSACTION_MARKERS_PER_REQUEST_MAX: Final = 1_000
TRANSACTIONAL_IDS_PER_PASS_MAX: Final = 1_000
# How much longer than the maximum time-out a transaction may take, and how often this is checked.
LATE_TRANSACTION_BUFFER_MS: Final = 300_000
LATE_TRANSACTION_CHECK_INTERVAL_MS: Final = 60_000

# Frames: bytes per read while no frame is in progress, and up to which size an incomplete frame
# stays in the shared read buffer instead of one of its own.
FRAME_SCRATCH_BYTES: Final = 64 * 1024
FRAME_HEAD_KEPT_BYTES_MAX: Final = 4 * 1024
# A frame's buffer is at most this large before its bytes arrive, whatever length it claims.
FRAME_AT_ONCE_BYTES_MAX: Final = 1024 * 1024
# How much of an offsets partition is read at a time while it is loaded.
GROUP_LOAD_READ_BYTES: Final = 256 * 1024
# Refused records that a response lists individually.
RECORD_ERRORS_MAX: Final = 10_000
# Up to this many bytes of records are validated on the event loop.
VALIDATION_AT_ONCE_BYTES_MAX: Final = 1024 * 1024

# The client: the largest response it accepts, requests in flight on a connection, and the rounds of
# a SASL exchange.
CLIENT_RESPONSE_BYTES_MAX: Final = 128 * 1024 * 1024
CLIENT_IN_FLIGHT_REQUESTS_MAX: Final = 256
CLIENT_SASL_TURNS_MAX: Final = 8
# How long a connection that was cut off may take to be gone.
CLIENT_CLOSE_SECONDS_MAX: Final = 1.0

# Partitions in all fetch sessions of a broker; a fetch beyond them gets no session.
FETCH_SESSION_PARTITIONS_MAX: Final = 1_000_000

# Unfinished files of puts into a local directory; the next start removes them.
OBJECT_TEMPORARY_AGE_MS_MAX: Final = 60 * 60 * 1000
# Folders that a local object directory keeps open: all of those that WAL objects are put into.
OBJECT_FOLDERS_KEPT_MAX: Final = 512
# Objects up to this size are put into a directory beside the logs, without syncs, on the event
# loop: handing them to a thread takes longer than the copy into the page cache.
OBJECT_INLINE_BYTES_MAX: Final = 512 * 1024
# Part of a large object that is put in parts; S3 takes no smaller ones.
OBJECT_PART_BYTES_MIN: Final = 5 * 1024 * 1024
OBJECT_PART_BYTES: Final = 8 * 1024 * 1024
# How long a store that is closed waits for uploads to be aborted.
OBJECT_UPLOADS_END_SECONDS_MAX: Final = 5.0
# How far a restore lifts leader epochs: more than a cluster uses between two backups.
EPOCHS_PER_RESTORE: Final = 1_000_000
# A remote segment: its manifest, one of its indexes, and its chunks. A manifest of as many chunks
# has about six bytes for each.
REMOTE_MANIFEST_BYTES_MAX: Final = 8 * 1024 * 1024
REMOTE_INDEX_BYTES_MAX: Final = 256 * 1024 * 1024
REMOTE_CHUNKS_MAX: Final = 1024 * 1024
REMOTE_CHUNK_BYTES_MAX: Final = 256 * 1024 * 1024
# Manifests that a broker keeps in memory; one of a plain segment has a few hundred bytes.
REMOTE_MANIFESTS_KEPT_MAX: Final = 1000
# Keys per bulk deletion, as in S3; entries that count as one listing request.
OBJECT_KEYS_PER_REQUEST: Final = 1000

# A diskless coordinator: partitions and producers in its memory cache, queued requests, requests
# handled in one turn of its thread, and commit results kept for repeated commits.
DISKLESS_CACHED_ROWS_MAX: Final = 100_000
DISKLESS_PENDING_REQUESTS_MAX: Final = 10_000
DISKLESS_REQUESTS_PER_TURN_MAX: Final = 32
# Turns after which another thread checkpoints a coordinator's write-ahead log into its database;
# pages after which, if that does not suffice, its own thread does so while all callers wait; and
# pages after which SQLite does so itself, wherever that is.
DISKLESS_TURNS_PER_CHECKPOINT: Final = 32
DISKLESS_CHECKPOINT_PAGES_MAX: Final = 4_096
DISKLESS_AUTO_CHECKPOINT_PAGES: Final = 16_384
# Batches committed in one turn on the event loop; larger turns run in a thread.
DISKLESS_INLINE_BATCHES_MAX: Final = 128
# Commits are buffered until there are this many batches, or for this long, before they are written
# to the database together; no caller waits for that.
DISKLESS_GATHERED_BATCHES_MAX: Final = 64
DISKLESS_GATHERED_SECONDS_MAX: Final = 0.01
# The latest batches of a coordinator that are found without its database; 46 bytes each, and some
# hundred for each commit of a partition.
DISKLESS_TAIL_BATCHES_MAX: Final = 32_768
DISKLESS_ANSWERS_KEPT_MS: Final = 2 * 60 * 60 * 1000
# How much of a coordinator's log is read at a time while it is loaded.
DISKLESS_LOAD_READ_BYTES: Final = 4 * 1024 * 1024
# Commits of unknown outcome whose division among coordinators is remembered.
DISKLESS_UNSETTLED_FILES_MAX: Final = 10_000
# Time-outs of calls to another broker's coordinators: for a commit (after that, its outcome is
# requested again), for other calls, and for a wait for commits.
DISKLESS_COMMIT_TIMEOUT_MS: Final = 5_000
DISKLESS_CALL_TIMEOUT_MS: Final = 10_000
DISKLESS_WAIT_MS: Final = 20_000
DISKLESS_WAIT_MS_MAX: Final = 60_000
# Partitions whose last commits a coordinator remembers for waiting brokers; beyond that, all are
# reported.
DISKLESS_MOVES_KEPT_MAX: Final = 10_000
# Topics whose partitions a coordinator creates in one write for another broker.
DISKLESS_TOPICS_PER_WRITE_MAX: Final = 100
# Batches that a coordinator drops in one write of a prune: commits do not wait long behind it.
DISKLESS_PRUNED_BATCHES_MAX: Final = 500
# A chunk of a coordinator's snapshot sent to a follower.
DISKLESS_SNAPSHOT_PIECE_BYTES: Final = 4 * 1024 * 1024
# Producers and partitions for whose lost batch a writer waits.
DISKLESS_LOST_BATCHES_MAX: Final = 10_000
# Partitions whose retention is enforced in one call of the control plane.
DISKLESS_RETENTION_PARTITIONS_PER_CALL: Final = 100
# A backup of metadata: a part of a log in one object, and the list of all objects.
DISKLESS_BACKUP_PIECE_BYTES: Final = 16 * 1024 * 1024
DISKLESS_BACKUP_MANIFEST_BYTES_MAX: Final = 64 * 1024 * 1024
# Files in one response to an inspection.
DISKLESS_FILES_LISTED_MAX: Final = 5_000

# Bulk reading: partitions of one plan, splits in its response (larger ones beyond that), batches
# read in one pass over a coordinator's state, batches located in one response, and concurrent
# passes.
BULK_PARTITIONS_PER_REQUEST: Final = 5_000
BULK_SPLITS_MAX: Final = 100_000
BULK_PLANNED_BATCHES_PER_CALL: Final = 50_000
BULK_LOCATED_BATCHES_MAX: Final = 10_000
BULK_LOOKS_AT_ONCE_MAX: Final = 2
# Bulk writing: the size of a staged object, objects per commit and its time-out, objects in a
# broker's memory, the length of a writer's name, pins per batch of a coordinator's log, the age up
# to which an object can be pinned, and the life time of a pin.
STAGED_OBJECT_BYTES_MAX: Final = 64 * 1024 * 1024
BULK_COMMIT_BATCHES_PER_REQUEST: Final = 10_000
BULK_COMMIT_BYTES_PER_REQUEST: Final = 256 * 1024 * 1024
BULK_TIMEOUT_MS_MAX: Final = 5 * 60 * 1000
STAGED_OBJECTS_AT_ONCE_MAX: Final = 2
STAGED_WRITER_CHARACTERS_MAX: Final = 255
DISKLESS_PINS_PER_WRITE_MAX: Final = 500
STAGED_PIN_AGE_MS_MAX: Final = 24 * 60 * 60 * 1000
STAGED_PIN_LIFETIME_MS_MAX: Final = 7 * 24 * 60 * 60 * 1000

# Reading remote segments: the largest batch (a request holds no larger one), the chunks that
# segments are read in, the memory for their indexes, readers whose position is remembered, and how
# long what was read ahead waits for its reader.
REMOTE_BATCH_BYTES_MAX: Final = 100 * 1024 * 1024
REMOTE_CHUNK_BYTES: Final = 1024 * 1024
REMOTE_INDEX_MEMORY_BYTES_MAX: Final = 16 * 1024 * 1024
REMOTE_READERS_REMEMBERED_MAX: Final = 4096
REMOTE_READ_AHEAD_SECONDS_MAX: Final = 30.0

# The metadata topic of tiered storage: how long an append may take and a read waits for records,
# how much is read at once, and records that are applied before other tasks get a turn.
REMOTE_METADATA_APPEND_MS_MAX: Final = 30_000
REMOTE_METADATA_FETCH_WAIT_MS: Final = 5_000
REMOTE_METADATA_READ_BYTES: Final = 1024 * 1024
REMOTE_METADATA_RECORDS_PER_TURN: Final = 200
# A larger snapshot file is ignored.
REMOTE_METADATA_SNAPSHOT_BYTES_MAX: Final = 1024 * 1024 * 1024
# Segments in one response that describes a remote log.
REMOTE_SEGMENTS_DESCRIBED_MAX: Final = 2_000
# What brokers keep of remote logs that they do not follow: segments in all, about 300 bytes each;
# how long one replica is asked for a remote log; when one that nobody told is asked for again, for
# reads to come, and of how many that is remembered.
REMOTE_PREFIX_SEGMENTS_MAX: Final = 100_000
REMOTE_PREFIX_LEARN_SECONDS_MAX: Final = 10.0
REMOTE_PREFIX_ASK_AGAIN_SECONDS: Final = 30.0
REMOTE_PREFIX_FAILURES_MAX: Final = 10_000
# Pruning the WAL below remote segments: partitions whose offsets are asked for at once, segments of
# a partition that are read back in one pass, and how many at the same time.
PRUNED_PARTITIONS_PER_CALL_MAX: Final = 1_000
PRUNED_SEGMENTS_PER_PASS_MAX: Final = 100
PRUNED_SEGMENTS_AT_ONCE: Final = 8
# Segments of a partition whose deletion a leader remembers, in case a record comes late.
REMOTE_SEGMENTS_GIVEN_UP_MAX: Final = 1_000
# Segments that jobs assemble at a time: of a partition, and of all that a broker leads. How long
# their objects are waited for, how soon the end of that is noticed, and how many are checked at
# once.
EXTERNAL_SEGMENTS_PER_PARTITION_MAX: Final = 32
EXTERNAL_SEGMENTS_OPEN_MAX: Final = 10_000
EXTERNAL_LEASE_SECONDS: Final = 3600.0
EXTERNAL_LEASE_LOOK_SECONDS: Final = 1.0
EXTERNAL_CHECKS_AT_ONCE_MAX: Final = 4
# Partitions of one request for such segments, and how many of them are worked on at once.
EXTERNAL_PARTITIONS_PER_REQUEST_MAX: Final = 1_000
EXTERNAL_PARTITIONS_AT_ONCE_MAX: Final = 16

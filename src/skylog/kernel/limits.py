"""A limit for everything: names say what is limited, the unit stands last but one."""

from __future__ import annotations

from typing import Final

# Replicated machines: callers that wait for the high watermark or for a later answer.
RUNTIME_PENDING_REQUESTS_MAX: Final = 20_000

# The metadata log, as in Kafka: its largest batch, and the batches of a snapshot.
METADATA_BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
# A quorum-state or meta.properties file is a few lines; anything larger is not one.
QUORUM_FILE_BYTES_MAX: Final = 64 * 1024
# Replicas of the metadata log that its leader keeps account of.
QUORUM_OBSERVERS_MAX: Final = 10_000

# Connections. A client that has not proved who it is gets little memory and little time.
UNAUTHENTICATED_REQUEST_BYTES_MAX: Final = 512 * 1024
HANDSHAKE_SECONDS_MAX: Final = 30.0
# Before TLS is agreed on, a connection is not even counted.
TLS_HANDSHAKE_SECONDS_MAX: Final = 10.0
# An answer that nobody reads holds memory; after this long without progress it is given up.
WRITE_STALL_SECONDS_MAX: Final = 60.0
# A connection to /metrics and /health ends after so long, whatever its client does or does not.
HTTP_CONNECTION_SECONDS_MAX: Final = 30.0
# Requests read ahead of the one in work; beyond that the client's socket is the queue.
CONNECTION_REQUESTS_WAITING_MAX: Final = 64
CONNECTION_WAITING_BYTES_MAX: Final = 1024 * 1024
# Requests of one connection that are handled before others get their turn.
CONNECTION_REQUESTS_PER_TURN_MAX: Final = 16
# Things that one request asks about, answered before others get their turn.
ANSWERS_PER_TURN: Final = 200
CONFIGS_DESCRIBED_PER_TURN: Final = 20
# What all connections together may make the broker hold: requests that are received, waiting or in
# work (unless queued.max.request.bytes says otherwise), and answers that clients have not taken.
# Beyond that, whoever has held it longest is cut off.
REQUEST_BYTES_IN_FLIGHT_MAX: Final = 512 * 1024 * 1024
ANSWER_BYTES_IN_FLIGHT_MAX: Final = 512 * 1024 * 1024
# Less than this on one connection is not counted.
IN_FLIGHT_BYTES_COUNTED_MIN: Final = 64 * 1024
# When much is waiting to be taken, a fetch gets no more than this, and at least one batch.
FETCH_BYTES_UNDER_PRESSURE: Final = 1024 * 1024
# How long a shutdown waits for clients to take the answers that were written for them.
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
# How long a broker that starts waits for its coordinators before it says that it is up.
START_LOADING_SECONDS_MAX: Final = 30.0
# How long a producer waits for a block of ids before it is told to ask again, perhaps elsewhere.
PRODUCER_IDS_WAIT_SECONDS_MAX: Final = 1.0
# How long a broker that stops waits for files of diskless batches that nobody takes.
DISKLESS_CLOSE_SECONDS_MAX: Final = 5.0
# Produce requests of one connection whose batches are on their way to an object store; their bytes
# are bounded by diskless.produce.inflight.max.bytes. With few, small requests make small files, and
# a producer of a thousand requests a second waits for more than an upload and its commit.
CONNECTION_REQUESTS_OVERLAPPING_MAX: Final = 2048
# Of the files that the process may open, those that neither logs nor connections get.
OPEN_FILES_RESERVED: Final = 32
LISTEN_BACKLOG: Final = 512

# Log lines: values may come from clients.
LOG_FIELD_CHARACTERS_MAX: Final = 2_000
LOG_TRACEBACK_CHARACTERS_MAX: Final = 20_000
# Lines of one kind in one second: clients cause some. Of further ones only the number is logged.
LOG_LINES_PER_SECOND_MAX: Final = 100
# Requests that were refused; of more, only the number is logged.
REFUSALS_LOGGED_PER_SECOND_MAX: Final = 50

# Settings: a file or a value larger than this is no configuration.
SETTINGS_FILE_BYTES_MAX: Final = 1024 * 1024
SETTING_VALUE_CHARACTERS_MAX: Final = 64 * 1024

# Quotas: clients measured at once; the one that was idle longest is forgotten first.
QUOTA_MEASUREMENTS_MAX: Final = 20_000
# Addresses whose rate of new connections is measured at once.
CONNECTION_RATE_ADDRESSES_MAX: Final = 20_000
# PEM files and values: a chain and a key are a few kilobytes.
PEM_BYTES_MAX: Final = 1024 * 1024
JAAS_CHARACTERS_MAX: Final = 1024 * 1024

# What the records of one batch may decompress to while a broker looks at them. Kafka has no such
# limit because it looks at one record at a time.
RECORDS_DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
# How many such batches are looked at at once: so much memory may bombs take, and so little time
# may they take from others.
VALIDATIONS_AT_ONCE_MAX: Final = 2
# Each member of a gzip stream costs a copy of what follows it; producers write one.
GZIP_MEMBERS_MAX: Final = 1024

# What an error says to a client: it may quote the client, and a string has 32,767 bytes at most.
ERROR_MESSAGE_CHARACTERS_MAX: Final = 8_000

# Wire: elements that take no bytes, whose count nothing else bounds.
WIRE_EMPTY_ELEMENTS_MAX: Final = 10_000
# Topics, partitions, groups and whatever else one request may list in all.
WIRE_REQUEST_ELEMENTS_MAX: Final = 50_000
# Records up to this size are copied into the bytes around them: one write costs less than three.
WIRE_RECORDS_JOINED_BYTES_MAX: Final = 1024

# The controller, as in Kafka: what one request may write and how many partitions it may create.
CONTROLLER_RECORDS_PER_REQUEST_MAX: Final = 10_000
CONTROLLER_PARTITIONS_PER_REQUEST_MAX: Final = 10_000
# Lines that one look at the placement of replicas may write.
CONTROLLER_NOTES_MAX: Final = 100
# A config value is a Kafka string; appending to a list may not make it longer.
CONFIG_VALUE_CHARACTERS_MAX: Final = 32_767
# Partitions that a broker makes before it answers for a change of metadata, and, when there are
# more, how many it makes before others get their turn.
PARTITIONS_MADE_AT_ONCE_MAX: Final = 200
PARTITIONS_MADE_PER_TURN: Final = 10
# Topics that one Metadata request may bring into being; for the others it may ask again.
TOPICS_CREATED_ON_DEMAND_MAX: Final = 100
TOPIC_NAME_CHARACTERS_MAX: Final = 249

# Local logs: segment files that may be open at once, whatever the number of partitions.
LOG_OPEN_FILES_MAX: Final = 4096
# The largest batch that a search by timestamp decodes on the event loop.
LOG_INLINE_DECODE_BYTES_MAX: Final = 32 * 1024
# Logs that are compacted at once at most, whatever log.cleaner.threads says.
LOG_CLEANER_THREADS_MAX: Final = 16
# Producers of one partition whose first batch of a transaction waits for its coordinator's word.
TRANSACTION_GUARDS_PER_PARTITION_MAX: Final = 10_000
# Text files of a log directory (checkpoints); 10,000 partitions take about 1 MiB.
LOG_CHECKPOINT_BYTES_MAX: Final = 256 * 1024 * 1024

# What one member of a group may say of itself in JoinGroup, and what all members of the groups of
# one offsets partition may. A group that is to be written must be smaller than a batch anyway.
GROUP_MEMBER_METADATA_BYTES_MAX: Final = 4 * 1024 * 1024
GROUP_METADATA_BYTES_MAX: Final = 64 * 1024 * 1024
# Members of one group that were given an id and have not come back with it.
GROUP_PENDING_MEMBERS_MAX: Final = 2_000
# A subscription by regular expression: its length, and the memory that compiling it may take.
GROUP_REGEX_CHARACTERS_MAX: Final = 1_024
GROUP_REGEX_MEMORY_BYTES: Final = 1024 * 1024
# Different regular expressions of one group.
GROUP_REGEXES_MAX: Final = 100
# Names of topics that are held against a group's expressions before others have their turn.
GROUP_REGEX_NAMES_PER_TURN: Final = 500
# One part of a pass over all groups (expiry, deleted topics), so that it holds nobody up.
GROUP_PASS_GROUPS_MAX: Final = 1_000
GROUP_PASS_RECORDS_BYTES_MAX: Final = 512 * 1024

# Transactions: markers that go to a node in one request, and ids that are looked at before others
# have their turn.
TRANSACTION_MARKERS_PER_REQUEST_MAX: Final = 1_000
TRANSACTIONAL_IDS_PER_PASS_MAX: Final = 1_000
# Beyond the longest time-out, how long the end of a transaction may take; and how often to look.
LATE_TRANSACTION_BUFFER_MS: Final = 300_000
LATE_TRANSACTION_CHECK_INTERVAL_MS: Final = 60_000

# Frames: what one read may bring while no frame is in progress, and up to which size an incomplete
# frame waits in the scratch for its rest instead of in a buffer of its own.
FRAME_SCRATCH_BYTES: Final = 64 * 1024
FRAME_HEAD_KEPT_BYTES_MAX: Final = 4 * 1024
# A frame gets at most this much memory on the word of its length; the rest as its bytes come.
FRAME_AT_ONCE_BYTES_MAX: Final = 1024 * 1024
# How much of an offsets partition is read at once while it is loaded.
GROUP_LOAD_READ_BYTES: Final = 256 * 1024
# Refused records that an answer names one by one; further ones are refused without a line.
RECORD_ERRORS_MAX: Final = 10_000
# Validation of at most so many bytes of records is done at once, on the event loop.
VALIDATION_AT_ONCE_BYTES_MAX: Final = 1024 * 1024

# The client: the largest answer it takes, requests that wait for one on a connection, and the
# turns of a SASL exchange.
CLIENT_RESPONSE_BYTES_MAX: Final = 128 * 1024 * 1024
CLIENT_IN_FLIGHT_REQUESTS_MAX: Final = 256
CLIENT_SASL_TURNS_MAX: Final = 8
# How long a connection that was cut off may take to be gone.
CLIENT_CLOSE_SECONDS_MAX: Final = 1.0

# Partitions that all fetch sessions of a broker may hold; a fetch beyond them gets no session.
FETCH_SESSION_PARTITIONS_MAX: Final = 1_000_000

# Files that puts into a local directory never finished; the next start removes them.
OBJECT_TEMPORARY_AGE_MS_MAX: Final = 60 * 60 * 1000
# Folders that a local directory of objects keeps open: all of those that WAL objects go to.
OBJECT_FOLDERS_KEPT_MAX: Final = 512
# What is put into a directory beside the logs, without syncs, in the event loop: to hand it to a
# thread takes longer than the copy into the page cache.
OBJECT_INLINE_BYTES_MAX: Final = 512 * 1024
# Keys that one bulk deletion names, as in S3; what a listing counts as one request.
OBJECT_KEYS_PER_REQUEST: Final = 1000

# A diskless coordinator: partitions and producers that it keeps at hand, requests that wait for it,
# those that it handles in one turn of its thread, and answers to commits kept for a repetition.
DISKLESS_CACHED_ROWS_MAX: Final = 100_000
DISKLESS_PENDING_REQUESTS_MAX: Final = 10_000
DISKLESS_REQUESTS_PER_TURN_MAX: Final = 32
# Turns after which a coordinator's write-ahead log is carried into its database by another thread,
# pages after which, if that is not enough, its own thread does it while everybody waits, and pages
# after which SQLite does so itself, wherever that is.
DISKLESS_TURNS_PER_CHECKPOINT: Final = 32
DISKLESS_CHECKPOINT_PAGES_MAX: Final = 4_096
DISKLESS_AUTO_CHECKPOINT_PAGES: Final = 16_384
# Batches of commits in a turn that is done in the event loop; what takes longer goes to a thread.
DISKLESS_INLINE_BATCHES_MAX: Final = 128
# Commits wait in memory until so many batches have gathered, or so long, before they go to the
# database together: nobody waits for that.
DISKLESS_GATHERED_BATCHES_MAX: Final = 64
DISKLESS_GATHERED_SECONDS_MAX: Final = 0.01
# The latest batches of a coordinator that are found without its database; 46 bytes each, and some
# hundred for each commit of a partition.
DISKLESS_TAIL_BATCHES_MAX: Final = 32_768
DISKLESS_ANSWERS_KEPT_MS: Final = 2 * 60 * 60 * 1000
# How much of a coordinator's log is read at once while it is loaded.
DISKLESS_LOAD_READ_BYTES: Final = 4 * 1024 * 1024
# Commits under an unknown outcome whose division among coordinators is remembered.
DISKLESS_UNSETTLED_FILES_MAX: Final = 10_000
# What a broker lets another one's coordinators have: time for a commit (after that, what is still
# under way is asked for again), time for other calls, and how long a wait for commits lasts.
DISKLESS_COMMIT_TIMEOUT_MS: Final = 5_000
DISKLESS_CALL_TIMEOUT_MS: Final = 10_000
DISKLESS_WAIT_MS: Final = 20_000
DISKLESS_WAIT_MS_MAX: Final = 60_000
# Partitions whose last commits a coordinator remembers for waiting brokers; of others all are told.
DISKLESS_MOVES_KEPT_MAX: Final = 10_000
# Topics whose partitions a coordinator creates in one write for another broker.
DISKLESS_TOPICS_PER_WRITE_MAX: Final = 100
# A piece of a coordinator's snapshot, on its way to a follower.
DISKLESS_SNAPSHOT_PIECE_BYTES: Final = 4 * 1024 * 1024
# Producers and partitions whose lost batch a writer waits for.
DISKLESS_LOST_BATCHES_MAX: Final = 10_000
# Partitions whose retention is enforced in one call of the control plane.
DISKLESS_RETENTION_PARTITIONS_PER_CALL: Final = 100
# A backup of metadata: a stretch of a log in one object, and the list of all objects.
DISKLESS_BACKUP_PIECE_BYTES: Final = 16 * 1024 * 1024
DISKLESS_BACKUP_MANIFEST_BYTES_MAX: Final = 64 * 1024 * 1024
# Files in one answer to somebody who looks at them.
DISKLESS_FILES_LISTED_MAX: Final = 5_000

# Bulk reading: partitions of one plan, splits in its answer (larger ones beyond that), batches that
# one look at a coordinator's state goes through, batches whose places one answer tells, and such
# looks at once.
BULK_PARTITIONS_PER_REQUEST: Final = 5_000
BULK_SPLITS_MAX: Final = 100_000
BULK_PLANNED_BATCHES_PER_CALL: Final = 50_000
BULK_LOCATED_BATCHES_MAX: Final = 10_000
BULK_LOOKS_AT_ONCE_MAX: Final = 2
# Bulk writing: a staged object, what one commit names of them and how long it may take, objects in
# a broker's memory, a writer's name, the pins that one batch of a coordinator's log takes, how old
# an object may be when it is pinned, and how long a pin keeps it.
STAGED_OBJECT_BYTES_MAX: Final = 64 * 1024 * 1024
BULK_COMMIT_BATCHES_PER_REQUEST: Final = 10_000
BULK_COMMIT_BYTES_PER_REQUEST: Final = 256 * 1024 * 1024
BULK_TIMEOUT_MS_MAX: Final = 5 * 60 * 1000
STAGED_OBJECTS_AT_ONCE_MAX: Final = 2
STAGED_WRITER_CHARACTERS_MAX: Final = 255
DISKLESS_PINS_PER_WRITE_MAX: Final = 500
STAGED_PIN_AGE_MS_MAX: Final = 24 * 60 * 60 * 1000
STAGED_PIN_LIFETIME_MS_MAX: Final = 7 * 24 * 60 * 60 * 1000

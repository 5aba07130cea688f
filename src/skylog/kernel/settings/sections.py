"""The broker's settings in typed groups. Each field has its setting and documentation.

Times are milliseconds and sizes bytes unless a name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from skylog.kernel.settings.consumer_groups import ConsumerGroupSettings
from skylog.kernel.settings.fields import setting
from skylog.kernel.settings.transactions import TransactionSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The identity and role of this node."""

    node_id: int = setting("node.id", "Id of this node, unique among brokers and controllers.")
    process_roles: tuple[str, ...] = setting(
        "process.roles", "Roles of this process: broker, controller, or both."
    )
    rack: str | None = setting("broker.rack", "Rack or zone of this broker, to place replicas.")
    log_dirs: tuple[str, ...] = setting("log.dirs", "Directory of the local logs; see log.dir.")
    metadata_log_dir: str | None = setting(
        "metadata.log.dir", "Directory of the cluster metadata log; log.dirs when not set."
    )
    heartbeat_interval_ms: int = setting(
        "broker.heartbeat.interval.ms", "Interval of a broker's heartbeats."
    )
    session_timeout_ms: int = setting(
        "broker.session.timeout.ms", "A broker without heartbeat for this long is fenced."
    )
    controlled_shutdown_enable: bool = setting(
        "controlled.shutdown.enable", "Whether a broker hands over its partitions before it stops."
    )
    registration_timeout_ms: int = setting(
        "initial.broker.registration.timeout.ms", "A broker that cannot register in time stops."
    )
    request_timeout_ms: int = setting(
        "request.timeout.ms", "Longest wait for the response to a request between nodes."
    )

    @property
    def metadata_dir(self) -> str:
        """The directory of the metadata log."""
        return self.metadata_log_dir or self.log_dirs[0]

    @property
    def is_broker(self) -> bool:
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.process_roles


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """Sockets and their limits."""

    send_buffer_bytes: int = setting(
        "socket.send.buffer.bytes", "SO_SNDBUF of connections; -1 leaves it to the system."
    )
    receive_buffer_bytes: int = setting(
        "socket.receive.buffer.bytes", "SO_RCVBUF of connections; -1 leaves it to the system."
    )
    request_bytes_max: int = setting(
        "socket.request.max.bytes", "Largest request; a larger one closes its connection."
    )
    listen_backlog: int = setting(
        "socket.listen.backlog.size", "Connections that may wait to be accepted."
    )
    connections_max: int = setting("max.connections", "Maximum connections of a listener.")
    connections_per_ip_max: int = setting(
        "max.connections.per.ip", "Maximum connections from one address."
    )
    connections_per_ip_overrides: str = setting(
        "max.connections.per.ip.overrides",
        "Exceptions to max.connections.per.ip as host:count,host:count.",
    )
    connection_rate_max: int = setting(
        "max.connection.creation.rate", "New connections per second that are accepted."
    )
    idle_ms_max: int = setting(
        "connections.max.idle.ms", "A connection without traffic for this long is closed."
    )
    failed_authentication_delay_ms: int = setting(
        "connection.failed.authentication.delay.ms",
        "Delay before a connection whose authentication failed is closed.",
    )
    queued_requests_max: int = setting(
        "queued.max.requests", "Requests in progress before reading from sockets pauses."
    )
    queued_bytes_max: int = setting(
        "queued.max.request.bytes",
        "Request bytes in memory; beyond that the connections with the oldest unfinished requests "
        "are closed. -1 is the built-in limit.",
    )
    sasl_receive_bytes_max: int = setting(
        "sasl.server.max.receive.size", "Largest request before authentication is complete."
    )
    request_partitions_max: int = setting(
        "max.request.partition.size.limit",
        "Maximum number of partitions in a DescribeTopicPartitions response.",
    )
    fetch_bytes_max: int = setting("fetch.max.bytes", "Largest fetch response.")
    fetch_sessions_max: int = setting(
        "max.incremental.fetch.session.cache.slots", "Maximum incremental fetch sessions."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    """The controllers' quorum and its log."""

    voters: tuple[str, ...] = setting(
        "controller.quorum.voters", "Static voters as id@host:port; unset on a single node."
    )
    bootstrap_servers: tuple[str, ...] = setting(
        "controller.quorum.bootstrap.servers",
        "Controllers through which the quorum is found, as host:port; unset on a single node.",
    )
    auto_join: bool = setting(
        "controller.quorum.auto.join.enable",
        "Whether a controller that is not a voter asks to become one.",
    )
    election_timeout_ms: int = setting(
        "controller.quorum.election.timeout.ms",
        "How long a candidate waits for votes before the next election.",
    )
    fetch_timeout_ms: int = setting(
        "controller.quorum.fetch.timeout.ms",
        "Time without a successful fetch after which the leader is considered lost.",
    )
    election_backoff_ms_max: int = setting(
        "controller.quorum.election.backoff.max.ms", "Longest back-off after a lost election."
    )
    append_linger_ms: int = setting(
        "controller.quorum.append.linger.ms", "How long appends wait for a shared sync."
    )
    request_timeout_ms: int = setting(
        "controller.quorum.request.timeout.ms", "Longest wait for a response within the quorum."
    )
    retry_backoff_ms: int = setting(
        "controller.quorum.retry.backoff.ms", "Pause before a failed quorum request is repeated."
    )
    fetch_bytes_max: int = setting(
        "controller.quorum.fetch.max.bytes", "Largest fetch from the metadata log."
    )
    snapshot_fetch_bytes_max: int = setting(
        "controller.quorum.fetch.snapshot.max.bytes", "Largest chunk of a fetched snapshot."
    )
    log_segment_bytes: int = setting(
        "metadata.log.segment.bytes", "Size at which the metadata log rolls a new segment."
    )
    log_segment_ms: int = setting(
        "metadata.log.segment.ms", "Age at which the metadata log rolls a new segment."
    )
    retention_bytes: int = setting(
        "metadata.max.retention.bytes",
        "Size of metadata log and snapshots beyond which old ones are deleted.",
    )
    retention_ms: int = setting(
        "metadata.max.retention.ms",
        "Age beyond which metadata segments and snapshots are deleted.",
    )
    snapshot_after_bytes: int = setting(
        "metadata.log.max.record.bytes.between.snapshots",
        "New record bytes after which a metadata snapshot is written.",
    )
    snapshot_after_ms: int = setting(
        "metadata.log.max.snapshot.interval.ms",
        "Time after which a metadata snapshot is written if there are new records; 0 is never.",
    )
    idle_interval_ms: int = setting(
        "metadata.max.idle.interval.ms",
        "Interval of no-op records of an idle active controller; 0 is none.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """Creating and deleting topics."""

    auto_create: bool = setting(
        "auto.create.topics.enable",
        "Create a topic when a client requests metadata of an unknown one.",
    )
    delete_enable: bool = setting("delete.topic.enable", "Whether topics may be deleted.")
    partitions: int = setting("num.partitions", "Default partitions of a new topic.")
    replication_factor: int = setting(
        "default.replication.factor", "Default replication factor of a new topic."
    )
    produce_validation: str = setting(
        "produce.validation",
        "full checks every record of a produced batch, as Kafka does; header trusts producers and"
        " checks the batch's header and checksum only.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Local logs."""

    retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms", "Interval of retention passes."
    )
    flush_scheduler_interval_ms: int = setting(
        "log.flush.scheduler.interval.ms", "Interval of checks for logs that are due for a sync."
    )
    flush_offset_checkpoint_interval_ms: int = setting(
        "log.flush.offset.checkpoint.interval.ms",
        "Interval at which recovery points are written.",
    )
    flush_start_offset_checkpoint_interval_ms: int = setting(
        "log.flush.start.offset.checkpoint.interval.ms",
        "Interval at which log start offsets are written.",
    )
    high_watermark_checkpoint_interval_ms: int = setting(
        "replica.high.watermark.checkpoint.interval.ms",
        "Interval at which high watermarks are written.",
    )
    initial_task_delay_ms: int = setting(
        "log.initial.task.delay.ms", "Delay of the first background pass after start."
    )
    recovery_threads: int = setting(
        "num.recovery.threads.per.data.dir", "Threads that recover logs after a crash."
    )
    producer_id_expiration_ms: int = setting(
        "producer.id.expiration.ms", "Idle time after which a producer's state is dropped."
    )
    producer_id_expiration_check_interval_ms: int = setting(
        "producer.id.expiration.check.interval.ms", "Interval of checks for idle producers."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleanerSettings:
    """Compaction of local logs."""

    enable: bool = setting("log.cleaner.enable", "Whether logs are compacted at all.")
    threads: int = setting("log.cleaner.threads", "Concurrently compacted logs, at most 16.")
    dedupe_buffer_bytes: int = setting(
        "log.cleaner.dedupe.buffer.size",
        "Memory for the newest offset of each key, 24 bytes a key, shared by the threads.",
    )
    io_buffer_bytes: int = setting(
        "log.cleaner.io.buffer.size", "Memory for reading and writing, shared by the threads."
    )
    load_factor: float = setting(
        "log.cleaner.io.buffer.load.factor", "How full the memory for offsets may get."
    )
    bytes_per_second_max: float = setting(
        "log.cleaner.io.max.bytes.per.second", "Bytes that compaction reads and writes per second."
    )
    backoff_ms: int = setting("log.cleaner.backoff.ms", "Pause when there is nothing to compact.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Consumer groups of the classic protocol, and committed offsets."""

    session_timeout_ms_min: int = setting(
        "group.min.session.timeout.ms", "Shortest session time-out a member may ask for."
    )
    session_timeout_ms_max: int = setting(
        "group.max.session.timeout.ms", "Longest session time-out a member may ask for."
    )
    initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms",
        "How long a new group waits for more members before its first rebalance.",
    )
    size_max: int = setting("group.max.size", "Members that one group may have.")
    offset_metadata_bytes_max: int = setting(
        "offset.metadata.max.bytes", "Largest metadata text that goes with a committed offset."
    )
    offsets_retention_minutes: int = setting(
        "offsets.retention.minutes",
        "Committed offsets of an empty group are kept for this long.",
    )
    offsets_retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms", "Interval of checks for expired offsets."
    )
    offsets_commit_timeout_ms: int = setting(
        "offsets.commit.timeout.ms", "Longest wait for the replicas of __consumer_offsets."
    )
    offsets_topic_partitions: int = setting(
        "offsets.topic.num.partitions", "Number of partitions of __consumer_offsets."
    )
    offsets_topic_replication_factor: int = setting(
        "offsets.topic.replication.factor",
        "Replicas of __consumer_offsets; 1 by default where one node is the whole cluster.",
    )
    offsets_topic_segment_bytes: int = setting(
        "offsets.topic.segment.bytes", "Segment size of __consumer_offsets."
    )
    offsets_load_buffer_bytes: int = setting(
        "offsets.load.buffer.size", "Bytes per read when committed offsets are loaded."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaSettings:
    """Measuring client rates for quotas."""

    window_count: int = setting("quota.window.num", "Samples of a client's rate.")
    window_seconds: int = setting("quota.window.size.seconds", "Length of one sample.")
    controller_window_count: int = setting(
        "controller.quota.window.num", "Samples of a rate of topic changes."
    )
    controller_window_seconds: int = setting(
        "controller.quota.window.size.seconds", "Length of one sample of topic changes."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Authorization and logins between nodes."""

    authorizer: str = setting(
        "authorizer.class.name",
        "Empty for none, or org.apache.kafka.metadata.authorizer.StandardAuthorizer for ACLs.",
    )
    super_users: str = setting(
        "super.users", "Principals that may do anything, as User:alice;User:bob."
    )
    allow_without_acl: bool = setting(
        "allow.everyone.if.no.acl.found", "Allow access to resources without ACLs."
    )
    inter_broker_mechanism: str = setting(
        "sasl.mechanism.inter.broker.protocol", "SASL mechanism between brokers."
    )
    controller_mechanism: str = setting(
        "sasl.mechanism.controller.protocol", "SASL mechanism for connections to controllers."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationSettings:
    """Metrics, health and logging of the node."""

    http_listener: str = setting(
        "http.listener",
        "Address of /metrics and /health as host:port; port 0: a free port, empty: none.",
    )
    log_format: str = setting(
        "log.format",
        "Format of log lines: text as key=value, or json; auto is text on a terminal.",
    )
    log_level: str = setting("log.level", "Lowest level of log lines that are written.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerTexts:
    """The settings that together define the listeners; ``listeners.py`` parses them."""

    listeners: tuple[str, ...] = setting(
        "listeners", "Sockets to listen on, as NAME://host:port; an empty host means all addresses."
    )
    advertised: tuple[str, ...] | None = setting(
        "advertised.listeners", "Addresses for clients; default: listeners."
    )
    protocol_map: str = setting(
        "listener.security.protocol.map",
        "Security protocol of each listener name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    )
    inter_broker: str | None = setting(
        "inter.broker.listener.name", "Listener for traffic between brokers."
    )
    inter_broker_protocol: str = setting(
        "security.inter.broker.protocol",
        "Names the inter-broker listener by its protocol when inter.broker.listener.name is unset.",
    )
    controller_names: tuple[str, ...] = setting(
        "controller.listener.names", "Listeners that belong to the controller."
    )

    @property
    def inter_broker_name(self) -> str:
        """The inter-broker listener: by its name, else by its protocol."""
        return (self.inter_broker or self.inter_broker_protocol).upper()


SECTIONS = (
    NodeSettings,
    NetworkSettings,
    QuorumSettings,
    TopicSettings,
    LogSettings,
    LogCleanerSettings,
    GroupSettings,
    ConsumerGroupSettings,
    TransactionSettings,
    QuotaSettings,
    AccessSettings,
    ObservationSettings,
    ListenerTexts,
)

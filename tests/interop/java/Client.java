import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Kafka's own client, driven by one JSON command per line; the same language as go/main.go. */
public class Client {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Duration POLL = Duration.ofMillis(100);
    static String bootstrap;
    static final Map<String, Member> members = new HashMap<>();

    static Properties settings(Object... pairs) {
        Properties given = new Properties();
        given.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < pairs.length; i += 2) {
            given.put(pairs[i], pairs[i + 1]);
        }
        return given;
    }

    static String text(JsonNode command, String name, String otherwise) {
        return command.hasNonNull(name) ? command.get(name).asText() : otherwise;
    }

    static byte[] bytes(JsonNode node) throws Exception {
        return node == null || node.isNull() ? null : node.binaryValue();
    }

    static Map<String, Object> convert(ConsumerRecord<byte[], byte[]> record) {
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            Map<String, Object> one = new HashMap<>();
            one.put("key", header.key());
            one.put("value", header.value());
            headers.add(one);
        }
        Map<String, Object> found = new HashMap<>();
        found.put("partition", record.partition());
        found.put("offset", record.offset());
        found.put("timestamp", record.timestamp());
        found.put("key", record.key());
        found.put("value", record.value());
        found.put("headers", headers);
        return found;
    }

    static Object produce(JsonNode command) throws Exception {
        String acks = text(command, "acks", null);
        Properties given = settings(
            "compression.type", text(command, "codec", "none"), "linger.ms", "20",
            "max.block.ms", "20000", "max.request.size", "4000000");
        if (acks != null) {
            given.put("acks", acks);
            given.put("enable.idempotence", "false");
        }
        String transaction = text(command, "transaction", null);
        if (transaction != null) {
            given.put("transactional.id", transaction);
        }
        var serializer = new ByteArraySerializer();
        try (var producer = new KafkaProducer<>(given, serializer, serializer)) {
            if (transaction != null) {
                producer.initTransactions();
            }
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : command.get("records")) {
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : record.path("headers")) {
                    headers.add(new RecordHeader(header.get("key").asText(), bytes(header.get("value"))));
                }
                Long timestamp = record.hasNonNull("timestamp") ? record.get("timestamp").asLong() : null;
                sent.add(producer.send(new ProducerRecord<>(
                    command.get("topic").asText(), record.get("partition").asInt(), timestamp,
                    bytes(record.get("key")), bytes(record.get("value")), headers)));
            }
            List<Long> offsets = new ArrayList<>();
            for (Future<RecordMetadata> one : sent) {
                offsets.add(one.get().offset());
            }
            return offsets;
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(Object... pairs) {
        Properties given = settings(pairs);
        given.put("enable.auto.commit", "false");
        given.put("auto.offset.reset", "earliest");
        var deserializer = new ByteArrayDeserializer();
        return new KafkaConsumer<>(given, deserializer, deserializer);
    }

    static Object consume(JsonNode command) {
        String topic = command.get("topic").asText();
        try (var consumer = consumer("isolation.level", text(command, "isolation", "read_uncommitted"))) {
            List<TopicPartition> all = consumer.partitionsFor(topic).stream()
                .map(info -> new TopicPartition(topic, info.partition())).collect(Collectors.toList());
            consumer.assign(all);
            consumer.seekToBeginning(all);
            if (command.hasNonNull("millis")) {
                long millis = command.get("millis").asLong();
                var asked = all.stream().collect(Collectors.toMap(p -> p, p -> millis));
                for (Map.Entry<TopicPartition, OffsetAndTimestamp> one : consumer.offsetsForTimes(asked).entrySet()) {
                    if (one.getValue() == null) {
                        consumer.seekToEnd(List.of(one.getKey()));
                    } else {
                        consumer.seek(one.getKey(), one.getValue().offset());
                    }
                }
            }
            List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
            long deadline = System.currentTimeMillis() + 30_000;
            while (found.size() < command.get("count").asInt()) {
                consumer.poll(POLL).forEach(found::add);
                if (System.currentTimeMillis() > deadline) {
                    throw new IllegalStateException("only " + found.size() + " records came");
                }
            }
            found.sort(Comparator.<ConsumerRecord<byte[], byte[]>>comparingInt(ConsumerRecord::partition)
                .thenComparingLong(ConsumerRecord::offset));
            return found.stream().map(Client::convert).collect(Collectors.toList());
        }
    }

    /** A member of a group that polls in a thread of its own, as an application would. */
    static class Member extends Thread implements ConsumerRebalanceListener {
        final KafkaConsumer<byte[], byte[]> consumer;
        final Set<Integer> assigned = ConcurrentHashMap.newKeySet();
        final List<Object> found = new ArrayList<>();
        volatile String wish = "";
        volatile Exception failure;

        Member(JsonNode command) {
            List<Object> given = new ArrayList<>(List.of(
                "group.id", command.get("group").asText(), "heartbeat.interval.ms", "200",
                "session.timeout.ms", "10000"));
            String protocol = text(command, "protocol", "classic");
            given.addAll(List.of("group.protocol", protocol));
            if (protocol.equals("classic")) {
                given.addAll(List.of("partition.assignment.strategy", text(command, "assignor", "")));
            } else {
                given.subList(2, 6).clear();
            }
            String instance = text(command, "instance", null);
            if (instance != null) {
                given.addAll(List.of("group.instance.id", instance));
            }
            consumer = consumer(given.toArray());
            consumer.subscribe(List.of(command.get("topic").asText()), this);
        }

        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            partitions.forEach(one -> assigned.add(one.partition()));
        }

        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(one -> assigned.remove(one.partition()));
        }

        public void run() {
            try {
                while (!wish.equals("leave")) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                        synchronized (found) {
                            found.add(convert(record));
                        }
                    }
                    if (wish.equals("commit")) {
                        consumer.commitSync();
                        wish = "";
                    }
                }
            } catch (Exception problem) {
                failure = problem;
            } finally {
                consumer.close();
            }
        }

        Object look() throws Exception {
            if (failure != null) {
                throw failure;
            }
            synchronized (found) {
                Map<String, Object> seen = Map.of(
                    "partitions", new TreeSet<>(assigned), "records", new ArrayList<>(found));
                found.clear();
                return seen;
            }
        }

        void commit() throws Exception {
            wish = "commit";
            while (wish.equals("commit") && isAlive()) {
                Thread.sleep(5);
            }
            if (failure != null) {
                throw failure;
            }
        }
    }

    static Object describe(Admin admin, String topic) throws Exception {
        var description = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Map<String, String> configs = new TreeMap<>();
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            configs.put(entry.name(), entry.value());
        }
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        description.partitions().forEach(p -> asked.put(new TopicPartition(topic, p.partition()), OffsetSpec.latest()));
        Map<Integer, Long> ends = new TreeMap<>();
        admin.listOffsets(asked).all().get().forEach((p, found) -> ends.put(p.partition(), found.offset()));
        return Map.of("partitions", description.partitions().size(), "configs", configs, "ends", ends);
    }

    static Object group(Admin admin, String group) throws Exception {
        var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        Map<String, Long> offsets = new TreeMap<>();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
            .forEach((p, offset) -> offsets.put(p.toString(), offset.offset()));
        return Map.of("state", described.groupState().toString(), "members", described.members().size(),
            "offsets", offsets);
    }

    static Object admin(JsonNode command) throws Exception {
        String topic = text(command, "topic", "");
        String group = text(command, "group", "");
        Map<String, String> configs = new HashMap<>();
        command.path("configs").properties().forEach(e -> configs.put(e.getKey(), e.getValue().asText()));
        try (Admin admin = Admin.create(settings("default.api.timeout.ms", "20000", "request.timeout.ms", "20000"))) {
            switch (command.get("do").asText()) {
                case "create":
                    int partitions = command.get("partitions").asInt();
                    var made = admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(configs)));
                    return Map.of("partitions", made.numPartitions(topic).get());
                case "grow":
                    int count = command.get("partitions").asInt();
                    admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(count))).all().get();
                    return "grown";
                case "alter":
                    List<AlterConfigOp> changes = configs.entrySet().stream()
                        .map(e -> new AlterConfigOp(new ConfigEntry(e.getKey(), e.getValue()), AlterConfigOp.OpType.SET))
                        .collect(Collectors.toList());
                    var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
                    admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
                    return "altered";
                case "describe":
                    return describe(admin, topic);
                case "trim":
                    var partition = new TopicPartition(topic, 0);
                    var upTo = RecordsToDelete.beforeOffset(command.get("count").asLong());
                    return admin.deleteRecords(Map.of(partition, upTo)).lowWatermarks().get(partition).get().lowWatermark();
                case "delete":
                    admin.deleteTopics(List.of(topic)).all().get();
                    return "deleted";
                case "group":
                    return group(admin, group);
                case "forget":
                    admin.deleteConsumerGroups(List.of(group)).all().get();
                    return "forgotten";
                default:
                    throw new IllegalArgumentException(command.get("do").asText());
            }
        }
    }

    static Object run(JsonNode command) throws Exception {
        String name = text(command, "member", "");
        switch (command.get("do").asText()) {
            case "produce":
                return produce(command);
            case "consume":
                return consume(command);
            case "join":
                members.put(name, new Member(command));
                members.get(name).start();
                return "joined";
            case "look":
                return members.get(name).look();
            case "commit":
                members.get(name).commit();
                return "committed";
            case "leave":
                Member leaver = members.remove(name);
                leaver.wish = "leave";
                leaver.join();
                return "left";
            default:
                return admin(command);
        }
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        var lines = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = lines.readLine()) != null) {
            Map<String, Object> answer = new HashMap<>();
            try {
                answer.put("ok", run(JSON.readTree(line)));
            } catch (Exception problem) {
                Throwable cause = problem.getCause() == null ? problem : problem.getCause();
                answer.put("error", cause.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
        Runtime.getRuntime().halt(0);
    }
}

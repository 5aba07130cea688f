import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactions of Kafka's own producer and consumer, one act by its name. */
public class Transactions {
    static String bootstrap;

    static Properties settings(Object... pairs) {
        Properties given = new Properties();
        given.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < pairs.length; i += 2) {
            given.put(pairs[i], pairs[i + 1]);
        }
        return given;
    }

    static KafkaProducer<String, String> producer(String id, int timeoutMs) {
        return new KafkaProducer<>(
            settings("transactional.id", id, "transaction.timeout.ms", timeoutMs),
            new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(String group) {
        return new KafkaConsumer<>(
            settings("group.id", group, "auto.offset.reset", "earliest",
                "enable.auto.commit", "false", "isolation.level", "read_committed",
                "max.poll.records", "25"),
            new StringDeserializer(), new StringDeserializer());
    }

    /** Read, change, write and commit offsets in one transaction; each third is given up at first. */
    static void transform(String from, String to, String group, int count) {
        try (KafkaConsumer<String, String> source = consumer(group);
             KafkaProducer<String, String> sink = producer(group + "-id", 60_000)) {
            sink.initTransactions();
            source.subscribe(List.of(from));
            int done = 0;
            int tries = 0;
            while (done < count) {
                ConsumerRecords<String, String> records = source.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                sink.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<String, String> record : records) {
                    sink.send(new ProducerRecord<>(to, record.key(), record.value() + "!"));
                    offsets.put(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                }
                sink.sendOffsetsToTransaction(offsets, source.groupMetadata());
                if (++tries % 3 == 0) {
                    sink.abortTransaction();
                    Map<TopicPartition, OffsetAndMetadata> back = source.committed(offsets.keySet());
                    for (TopicPartition each : offsets.keySet()) {
                        OffsetAndMetadata known = back.get(each);
                        source.seek(each, known == null ? 0 : known.offset());
                    }
                    continue;
                }
                sink.commitTransaction();
                done += records.count();
            }
            System.out.println("transformed " + done + " in " + tries);
        }
    }

    /** The second producer of an id fences the first. */
    static void fence(String to, String id) {
        try (KafkaProducer<String, String> first = producer(id, 60_000);
             KafkaProducer<String, String> second = producer(id, 60_000)) {
            first.initTransactions();
            first.beginTransaction();
            first.send(new ProducerRecord<>(to, "k", "of the first")).get();
            second.initTransactions();
            try {
                first.commitTransaction();
                System.out.println("committed");
            } catch (ProducerFencedException | InvalidProducerEpochException fenced) {
                System.out.println("fenced");
            }
            second.beginTransaction();
            second.send(new ProducerRecord<>(to, "k", "of the second")).get();
            second.commitTransaction();
            System.out.println("second committed");
        } catch (Exception unexpected) {
            System.out.println("failed " + unexpected);
        }
    }

    /** Begin a transaction, and end without a word: the coordinator has to notice. */
    static void vanish(String to, String id, int timeoutMs) throws Exception {
        KafkaProducer<String, String> producer = producer(id, timeoutMs);
        producer.initTransactions();
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(to, "k", "never to be seen")).get();
        System.out.println("begun");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** Many transactions of several partitions each. */
    static void many(String to, String id, int transactions, int partitions) {
        try (KafkaProducer<String, String> producer = producer(id, 60_000)) {
            producer.initTransactions();
            for (int number = 0; number < transactions; number++) {
                producer.beginTransaction();
                for (int index = 0; index < partitions; index++) {
                    producer.send(new ProducerRecord<>(to, index, "k", number + "-" + index));
                }
                if (number % 4 == 3) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
            System.out.println("done");
        }
    }

    public static void main(String[] given) throws Exception {
        bootstrap = given[0];
        switch (given[1]) {
            case "transform" -> transform(given[2], given[3], given[4], Integer.parseInt(given[5]));
            case "fence" -> fence(given[2], given[3]);
            case "vanish" -> vanish(given[2], given[3], Integer.parseInt(given[4]));
            case "many" -> many(given[2], given[3], Integer.parseInt(given[4]),
                Integer.parseInt(given[5]));
            default -> throw new IllegalArgumentException(given[1]);
        }
    }
}

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
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Transactions of Kafka's own producer, as fast as one after the other can be. */
public class TransactionLoad {
    static final double BILLION = 1e9;

    static KafkaProducer<byte[], byte[]> producer(String bootstrap, String id) {
        Properties given = new Properties();
        given.put("bootstrap.servers", bootstrap);
        given.put("transactional.id", id);
        return new KafkaProducer<>(given, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** Transactions in a second, each with one record to every partition. */
    static double rate(String bootstrap, String topic, int partitions, double seconds) {
        byte[] value = new byte[100];
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, topic + "-id")) {
            producer.initTransactions();
            long done = 0;
            long began = System.nanoTime();
            double warm = seconds / 2;
            boolean counting = false;
            while (true) {
                double past = (System.nanoTime() - began) / BILLION;
                if (!counting && past >= warm) {
                    counting = true;
                    began = System.nanoTime();
                    done = 0;
                } else if (counting && past >= seconds) {
                    return done / past;
                }
                producer.beginTransaction();
                for (int index = 0; index < partitions; index++) {
                    producer.send(new ProducerRecord<>(topic, index, null, value));
                }
                producer.commitTransaction();
                done++;
            }
        }
    }

    /** Bytes in a second that are read, written again and committed, with their offsets. */
    static double copy(String bootstrap, String from, String to, long count) {
        Properties given = new Properties();
        given.put("bootstrap.servers", bootstrap);
        given.put("group.id", to);
        given.put("auto.offset.reset", "earliest");
        given.put("enable.auto.commit", "false");
        given.put("isolation.level", "read_committed");
        given.put("max.poll.records", "2000");
        try (KafkaConsumer<byte[], byte[]> source =
                 new KafkaConsumer<>(given, new ByteArrayDeserializer(), new ByteArrayDeserializer());
             KafkaProducer<byte[], byte[]> sink = producer(bootstrap, to + "-id")) {
            sink.initTransactions();
            source.subscribe(List.of(from));
            long bytes = 0;
            long done = 0;
            long began = 0;
            while (done < count) {
                ConsumerRecords<byte[], byte[]> records = source.poll(Duration.ofSeconds(1));
                if (records.isEmpty()) {
                    continue;
                }
                if (began == 0) {
                    began = System.nanoTime();
                }
                sink.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    sink.send(new ProducerRecord<>(to, record.key(), record.value()));
                    bytes += record.value().length;
                    offsets.put(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                }
                sink.sendOffsetsToTransaction(offsets, source.groupMetadata());
                sink.commitTransaction();
                done += records.count();
            }
            return bytes / ((System.nanoTime() - began) / BILLION);
        }
    }

    public static void main(String[] given) {
        double found = given[0].equals("rate")
            ? rate(given[1], given[2], Integer.parseInt(given[3]), Double.parseDouble(given[4]))
            : copy(given[1], given[2], given[3], Long.parseLong(given[4]));
        System.out.println("RESULT " + found);
    }
}

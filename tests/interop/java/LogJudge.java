import java.io.File;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.record.internal.FileLogInputStream;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Kafka's own log on a partition's directory. It says what it makes of it: where the log ends, what
 * is stable, who its producers are, and what readers of committed records get at some offsets.
 *
 * <p>open: directory, clean or crashed, recovery point, then reads as offset:bytes. replay: a source
 * whose batches are appended one by one, as a follower does it, to a new directory, then reads.
 */
public class LogJudge {
    static UnifiedLog open(String directory, int segmentBytes, boolean clean, long point)
            throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        Map<String, String> settings =
                Map.of(
                        "internal.segment.bytes", String.valueOf(segmentBytes),
                        "index.interval.bytes", "100",
                        "segment.index.bytes", "1048576",
                        "retention.ms", "-1");
        return UnifiedLog.create(
                new File(directory),
                new LogConfig(settings),
                0L,
                point,
                scheduler,
                new BrokerTopicStats(),
                Time.SYSTEM,
                900_000,
                new ProducerStateManagerConfig(Integer.MAX_VALUE, true),
                600_000,
                new LogDirFailureChannel(10),
                clean,
                Optional.empty());
    }

    static void replay(UnifiedLog log, String source) throws Exception {
        File[] files = new File(source).listFiles((dir, name) -> name.endsWith(".log"));
        Arrays.sort(files);
        for (File file : files) {
            try (FileRecords records = FileRecords.open(file, false)) {
                for (FileLogInputStream.FileChannelRecordBatch batch : records.batches()) {
                    ByteBuffer buffer = ByteBuffer.allocate(batch.sizeInBytes());
                    batch.writeTo(buffer);
                    buffer.flip();
                    log.appendAsFollower(MemoryRecords.readableRecords(buffer), 0);
                    log.updateHighWatermark(log.logEndOffset());
                }
            }
        }
    }

    static void tell(UnifiedLog log, List<String> reads) throws Exception {
        log.updateHighWatermark(log.logEndOffset());
        System.out.println("end " + log.logEndOffset());
        System.out.println("stable " + log.lastStableOffset());
        log.activeProducers().stream()
                .map(
                        p ->
                                String.format(
                                        "producer %d %d %d %d %d",
                                        p.producerId(),
                                        p.producerEpoch(),
                                        p.lastSequence(),
                                        p.coordinatorEpoch(),
                                        p.currentTxnStartOffset()))
                .sorted()
                .forEach(System.out::println);
        for (String read : reads) {
            String[] parts = read.split(":");
            FetchDataInfo found =
                    log.read(
                            Long.parseLong(parts[0]),
                            Integer.parseInt(parts[1]),
                            FetchIsolation.TXN_COMMITTED,
                            true);
            long end = Long.parseLong(parts[0]);
            for (RecordBatch batch : found.records.batches()) {
                end = batch.nextOffset();
            }
            List<FetchResponseData.AbortedTransaction> aborted =
                    found.abortedTransactions.orElse(List.of());
            System.out.println(
                    "read "
                            + read
                            + " "
                            + end
                            + aborted.stream()
                                    .map(a -> " " + a.producerId() + ":" + a.firstOffset())
                                    .collect(Collectors.joining()));
        }
    }

    public static void main(String[] args) throws Exception {
        List<String> given = Arrays.asList(args);
        int segmentBytes = Integer.parseInt(args[1]);
        UnifiedLog log;
        List<String> reads;
        if (args[0].equals("replay")) {
            log = open(args[3], segmentBytes, false, 0L);
            replay(log, args[2]);
            reads = given.subList(4, given.size());
        } else {
            log = open(args[2], segmentBytes, args[3].equals("clean"), Long.parseLong(args[4]));
            reads = given.subList(5, given.size());
        }
        tell(log, reads);
        log.close();
        System.exit(0);
    }
}

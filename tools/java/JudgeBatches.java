// What Kafka says of produced batches: each input line is "version now key=value;… hex" ("-" for no
// settings), each output line "code indexes hex": the error code, the indexes of refused records, and
// the batch as it was stored. Run it with Kafka's jars on the class path:
//   java -cp '<jars>/*' tools/java/JudgeBatches.java < cases

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class JudgeBatches {
    private static final class FixedTime implements Time {
        long now;

        public long milliseconds() { return now; }
        public long hiResClockMs() { return now; }
        public long nanoseconds() { return now * 1_000_000; }
        public void sleep(long ms) { }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { }
        public Timer timer(long timeoutMs) { return Time.SYSTEM.timer(timeoutMs); }
    }

    private final FixedTime time = new FixedTime();
    private final KafkaScheduler scheduler = new KafkaScheduler(1);
    private final BrokerTopicStats stats = new BrokerTopicStats();

    private String judge(String line) throws Exception {
        String[] words = line.split(" ", 4);
        short version = Short.parseShort(words[0]);
        time.now = Long.parseLong(words[1]);
        Properties settings = new Properties();
        if (!words[2].equals("-"))
            for (String setting : words[2].split(";"))
                settings.put(setting.split("=")[0], setting.split("=")[1]);
        MemoryRecords records =
            MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(words[3])));
        File parent = Files.createTempDirectory("judge").toFile();
        UnifiedLog log = UnifiedLog.create(new File(parent, "topic-0"), new LogConfig(settings), 0, 0,
            scheduler, stats, time, 900_000, new ProducerStateManagerConfig(86_400_000, false),
            600_000, new LogDirFailureChannel(1), true, Optional.of(Uuid.ONE_UUID));
        try {
            ProduceRequest.validateRecords(version, records);
            log.appendAsLeader(records, 7);
            FileRecords stored = (FileRecords) log.read(0, 1 << 30, FetchIsolation.LOG_END, true).records;
            ByteBuffer bytes = ByteBuffer.allocate(stored.sizeInBytes());
            stored.readInto(bytes, 0);
            return "0 - " + HexFormat.of().formatHex(bytes.array(), 0, bytes.limit());
        } catch (RecordValidationException e) {
            String indexes = e.recordErrors().stream()
                .map(error -> String.valueOf(error.batchIndex)).collect(Collectors.joining(","));
            return Errors.forException(e.invalidException()).code() + " " + indexes + " -";
        } catch (Throwable e) {
            return Errors.forException(e).code() + " - -";
        } finally {
            log.close();
            Utils.delete(parent);
        }
    }

    public static void main(String[] args) throws Exception {
        JudgeBatches judge = new JudgeBatches();
        judge.scheduler.startup();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine())
            System.out.println(judge.judge(line));
        judge.scheduler.shutdown();
    }
}

// Batches as Kafka's own builder writes them, one "name hex" line each:
//   java -cp '<jars>/*' tools/java/WriteBatches.java

import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;

public class WriteBatches {
    private static final long NOW = 1_700_000_000_000L;

    private static SimpleRecord[] records(int count) {
        SimpleRecord[] records = new SimpleRecord[count];
        for (int i = 0; i < count; i++) {
            byte[] key = i % 3 == 0 ? null : ("key-" + i).getBytes();
            byte[] value = i % 5 == 0 ? null : "value ".repeat(i % 50).getBytes();
            Header[] headers = i % 2 == 0 ? new Header[0] : new Header[] {
                new RecordHeader("name", ("header-" + i).getBytes()), new RecordHeader("é", null)};
            records[i] = new SimpleRecord(NOW + (i % 7) * 1000 - 2000, key, value, headers);
        }
        return records;
    }

    private static void print(String name, MemoryRecords records) {
        ByteBuffer buffer = records.buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        System.out.println(name + " " + HexFormat.of().formatHex(bytes));
    }

    private static MemoryRecords built(Compression compression, TimestampType type, boolean transactional, int count) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 16),
            RecordBatch.CURRENT_MAGIC_VALUE, compression, type, 5, NOW, 77, (short) 3, 1000,
            transactional, 9);
        for (SimpleRecord record : records(count))
            builder.append(record);
        return builder.build();
    }

    public static void main(String[] args) {
        for (CompressionType type : CompressionType.values()) {
            Compression compression = Compression.of(type).build();
            print(type.name, MemoryRecords.withRecords(compression, records(40)));
            print(type.name + "-one", MemoryRecords.withRecords(compression, records(1)));
            print(type.name + "-stamped", built(compression, TimestampType.LOG_APPEND_TIME, false, 40));
            print(type.name + "-transactional", built(compression, TimestampType.CREATE_TIME, true, 40));
        }
        print("commit", MemoryRecords.withEndTransactionMarker(11, NOW, 4, 77, (short) 3,
            new EndTransactionMarker(ControlRecordType.COMMIT, 6)));
        print("leader-change", MemoryRecords.withLeaderChangeMessage(12, NOW, 4, ByteBuffer.allocate(512),
            new LeaderChangeMessage().setLeaderId(1)));
    }
}

// Writes messages with Kafka's own classes. Each input line: type, Java class, version, JSON, with
// tabs between; each output line: the bytes in hex, framed as Kafka frames that type in its logs.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

public class GoldenMessages {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", 4);
            short version = Short.parseShort(parts[2]);
            Message message = (Message) Class.forName(parts[1] + "JsonConverter")
                .getMethod("read", JsonNode.class, short.class)
                .invoke(null, mapper.readTree(parts[3]), version);
            System.out.println(HexFormat.of().formatHex(bytes(parts[0], message, version)));
        }
    }

    private static byte[] bytes(String type, Message message, short version) {
        switch (type) {
            case "metadata": {
                ApiMessageAndVersion record = new ApiMessageAndVersion((ApiMessage) message, version);
                MetadataRecordSerde serde = new MetadataRecordSerde();
                ObjectSerializationCache cache = new ObjectSerializationCache();
                ByteBuffer buffer = ByteBuffer.allocate(serde.recordSize(record, cache));
                serde.write(record, cache, new ByteBufferAccessor(buffer));
                return buffer.array();
            }
            case "coordinator-key":
                return MessageUtil.toCoordinatorTypePrefixedBytes((ApiMessage) message);
            case "coordinator-value":
                return MessageUtil.toVersionPrefixedBytes(version, message);
            default: {
                ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
                byte[] out = new byte[buffer.remaining()];
                buffer.get(out);
                return out;
            }
        }
    }
}

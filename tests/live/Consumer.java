package broker;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's consumer reads a topic from its beginning to its end. A record a line:
 * [partition, offset, timestamp type, timestamp, key, value, headers].
 */
final class Consumer {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        var properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("isolation.level", "read_committed");
        var deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        var json = new ObjectMapper();
        try (var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (int partition = 0; partition < Integer.parseInt(arguments[2]); partition++)
                partitions.add(new TopicPartition(arguments[1], partition));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            var ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                if (System.nanoTime() > deadline) throw new IllegalStateException("not at the end after 30 s");
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    List<List<String>> headers = new ArrayList<>();
                    record.headers().forEach(header -> headers.add(Arrays.asList(header.key(), hex(header.value()))));
                    List<Object> row = new ArrayList<>(List.of(
                        record.partition(), record.offset(), record.timestampType().id, record.timestamp()));
                    row.add(hex(record.key()));
                    row.add(hex(record.value()));
                    row.add(headers);
                    System.out.write(json.writeValueAsBytes(row));
                    System.out.write('\n');
                }
            }
        }
        System.out.flush();
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? null : HEX.formatHex(bytes);
    }
}

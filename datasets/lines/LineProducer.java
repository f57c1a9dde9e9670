import java.io.BufferedReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Produces the lines of a file to partition 0 of a topic, one record per line, without keys.
 * A line of the file is the create time in ms, a tab, and the record's value.
 *
 * java LineProducer.java FILE TOPIC BOOTSTRAP [SETTING=VALUE...]
 */
class LineProducer {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[2]);
        for (int i = 3; i < arguments.length; i++) {
            String[] setting = arguments[i].split("=", 2);
            properties.put(setting[0], setting[1]);
        }
        Exception[] failure = new Exception[1];
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
             BufferedReader lines = Files.newBufferedReader(Path.of(arguments[0]), StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                int tab = line.indexOf('\t');
                byte[] value = line.substring(tab + 1).getBytes(StandardCharsets.UTF_8);
                long timestampMs = Long.parseLong(line.substring(0, tab));
                producer.send(new ProducerRecord<byte[], byte[]>(arguments[1], 0, timestampMs, null, value),
                    (sent, failed) -> { if (failed != null) failure[0] = failed; });
            }
        }
        if (failure[0] != null) throw failure[0];
    }
}

import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * OlderProducer TOPIC... BOOTSTRAP: fills v1 topics with Kafka 0.10.2's producer, which sends v1. Their broker
 * has nothing to convert: it sets a set's offset, and its append time, and leaves the messages inside as they came.
 */
class OlderProducer {
    static final long BASE_MS = 1_772_442_000_000L; // Recorder.BASE_MS

    public static void main(String[] arguments) throws Exception {
        int topics = arguments.length - 1;
        for (int topic = 0; topic < topics; topic++) {
            for (String codec : new String[] {"none", "gzip", "snappy", "lz4"}) produce(arguments[topics], arguments[topic], codec);
        }
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static void produce(String bootstrap, String topic, String codec) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("linger.ms", "60000");
        properties.put("compression.type", codec);
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < 24; i++) {
                String value = String.format("{\"order\":%d,\"currency\":\"EUR\",\"state\":\"%s\"}", 10_000 + i, i % 3 == 0 ? "paid" : "created");
                producer.send(new ProducerRecord<>(topic, 0, BASE_MS + 7L * (i ^ 1), i % 5 == 0 ? null : utf8("customer-" + i % 9), i % 7 == 6 ? null : utf8(value)));
                if (i % 8 == 7) producer.flush();
            }
        }
    }
}

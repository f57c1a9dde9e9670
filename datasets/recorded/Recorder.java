import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Two jobs, both done by Apache Kafka's own classes:
 *   produce BOOTSTRAP       fills the topics of record.py's list through a running broker
 *   facts OUT FILE...       writes to OUT, as JSON, every record of every file as FileRecords reads it
 * Contents are seeded. Batches end where we flush (or at batch.size), so they do not depend on this machine's speed.
 */
class Recorder {
    static final long BASE_MS = Instant.parse("2026-03-02T09:00:00Z").toEpochMilli();
    static final String[] EVENTS = {"page_view", "page_view", "page_view", "click", "search", "add_to_cart", "checkout"};
    static final String[] COUNTRIES = {"DE", "FR", "US", "US", "GB", "JP", "BR", "IN"};
    static final String[] DEVICES = {"mobile", "mobile", "desktop", "tablet"};

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("produce")) {
            produce(arguments[1]);
        } else {
            facts(new File(arguments[1]), Arrays.copyOfRange(arguments, 2, arguments.length));
        }
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static Properties client(String bootstrap) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        return properties;
    }

    static KafkaProducer<byte[], byte[]> producer(String bootstrap, String... settings) {
        Properties properties = client(bootstrap);
        properties.put("linger.ms", "60000");
        for (int i = 0; i < settings.length; i += 2) properties.put(settings[i], settings[i + 1]);
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String group) {
        Properties properties = client(bootstrap);
        properties.put("group.id", group);
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        properties.put("max.poll.records", "50");
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static ProducerRecord<byte[], byte[]> record(String topic, Long timestampMs, byte[] key, byte[] value, Header... headers) {
        return new ProducerRecord<>(topic, 0, timestampMs, key, value, List.of(headers));
    }

    static String activity(Random random, String user, long timestampMs) {
        return String.format(
            "{\"event\":\"%s\",\"user_id\":\"%s\",\"session\":\"%s\",\"time\":\"%s\",\"page\":\"/products/%d\",\"device\":\"%s\",\"country\":\"%s\",\"duration_ms\":%d}",
            EVENTS[random.nextInt(EVENTS.length)], user, new UUID(random.nextLong(), random.nextLong()),
            Instant.ofEpochMilli(timestampMs), random.nextInt(5000), DEVICES[random.nextInt(DEVICES.length)],
            COUNTRIES[random.nextInt(COUNTRIES.length)], random.nextInt(60_000));
    }

    /** A few users make most of the events. */
    static String user(Random random) {
        return String.format("u-%06d", (int) (100_000 * Math.pow(random.nextDouble(), 4)));
    }

    static void produce(String bootstrap) throws Exception {
        Map<String, Map<String, String>> topics = new LinkedHashMap<>();
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) topics.put("activity-" + codec, Map.of());
        topics.put("service-headers", Map.of());
        topics.put("telemetry", Map.of());
        topics.put("edges", Map.of());
        topics.put("append-time", Map.of("message.timestamp.type", "LogAppendTime"));
        topics.put("append-time-zstd", Map.of("message.timestamp.type", "LogAppendTime"));
        topics.put("transactions", Map.of());
        topics.put("changelog", Map.of("cleanup.policy", "compact", "segment.bytes", "65536",
            "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "86400000"));
        try (Admin admin = Admin.create(client(bootstrap))) {
            List<NewTopic> created = new ArrayList<>();
            topics.forEach((name, configs) -> created.add(new NewTopic(name, 1, (short) 1).configs(configs)));
            admin.createTopics(created).all().get();
        }
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) activities(bootstrap, codec);
        serviceHeaders(bootstrap);
        telemetry(bootstrap);
        edges(bootstrap);
        appendTime(bootstrap, "append-time", "none");
        appendTime(bootstrap, "append-time-zstd", "zstd");
        transactions(bootstrap);
        changelog(bootstrap);
        commitOffsets(bootstrap);
    }

    /** The same records in every codec, from an idempotent producer; 1 to 60 records between two flushes. */
    static void activities(String bootstrap, String codec) {
        Random random = new Random(7);
        long timestampMs = BASE_MS;
        try (var producer = producer(bootstrap, "compression.type", codec)) {
            int left = 600;
            while (left > 0) {
                int count = Math.min(left, 1 + (int) (60 * Math.pow(random.nextDouble(), 2)));
                for (int i = 0; i < count; i++) {
                    timestampMs += (long) (-20 * Math.log(1 - random.nextDouble()));
                    String user = user(random);
                    producer.send(record("activity-" + codec, timestampMs, utf8(user), utf8(activity(random, user, timestampMs))));
                }
                producer.flush();
                left -= count;
            }
        }
    }

    /** Tracing headers; every tenth record has duplicates, a null value, an empty value, a key outside ASCII, or no header. */
    static void serviceHeaders(String bootstrap) {
        Random random = new Random(11);
        long timestampMs = BASE_MS;
        try (var producer = producer(bootstrap, "enable.idempotence", "false")) {
            for (int i = 0; i < 120; i++) {
                timestampMs += random.nextInt(50);
                List<Header> headers = new ArrayList<>();
                if (i % 10 != 9) {
                    headers.add(new RecordHeader("traceparent", utf8(String.format("00-%016x%016x-%016x-01", random.nextLong(), random.nextLong(), random.nextLong()))));
                    headers.add(new RecordHeader("service", utf8("checkout")));
                    headers.add(new RecordHeader("schema-version", utf8("3")));
                }
                if (i % 10 == 3) {
                    headers.add(new RecordHeader("retry", utf8("1")));
                    headers.add(new RecordHeader("retry", utf8("2")));
                    headers.add(new RecordHeader("retry", utf8("1")));
                }
                if (i % 10 == 5) headers.add(new RecordHeader("tenant", (byte[]) null));
                if (i % 10 == 6) headers.add(new RecordHeader("flags", new byte[0]));
                if (i % 10 == 7) headers.add(new RecordHeader("größe", utf8("klein")));
                String value = String.format("{\"level\":\"%s\",\"order\":%d,\"amount_cents\":%d,\"currency\":\"EUR\",\"customer\":\"%s\",\"state\":\"%s\"}",
                    i % 17 == 0 ? "warn" : "info", 10_000 + i, random.nextInt(200_000), user(random), i % 3 == 0 ? "paid" : "created");
                producer.send(record("service-headers", timestampMs, utf8(new UUID(random.nextLong(), random.nextLong()).toString()), utf8(value), headers.toArray(new Header[0])));
                if (i % 6 == 5) producer.flush();
            }
        }
    }

    /** One small record a batch, as a producer without linger sends it. */
    static void telemetry(String bootstrap) {
        Random random = new Random(13);
        long timestampMs = BASE_MS;
        try (var producer = producer(bootstrap, "enable.idempotence", "false")) {
            for (int i = 0; i < 300; i++) {
                timestampMs += 10_000 / 30;
                producer.send(record("telemetry", timestampMs, utf8(String.format("sensor-%09d", i % 30)),
                    utf8(String.format("{\"t\":%.1f,\"h\":%d}", 18 + 5 * random.nextDouble(), 30 + random.nextInt(40)))));
                producer.flush();
            }
        }
    }

    /** Nulls, empty keys and values, lengths around the sizes where a varint grows, timestamps that go back, a spread of a day. */
    static void edges(String bootstrap) {
        Random random = new Random(17);
        int[] lengths = {0, 1, 63, 64, 65, 8191, 8192};
        long[] stepsMs = {0, 1, 63, 64, -1, -64, -65, 8191, 8192, -8193, 1_048_575, 1_048_576, 86_400_000, -86_400_000};
        try (var producer = producer(bootstrap, "enable.idempotence", "false")) {
            for (int length : lengths) {
                byte[] filled = new byte[length];
                random.nextBytes(filled);
                producer.send(record("edges", BASE_MS, null, filled));
                producer.send(record("edges", BASE_MS, filled, null));
                producer.send(record("edges", BASE_MS, filled, filled));
                producer.send(record("edges", BASE_MS, null, null));
                producer.flush();
            }
            for (long step : stepsMs) producer.send(record("edges", BASE_MS + step, utf8("step"), utf8(Long.toString(step))));
            producer.flush();
            producer.send(record("edges", 0L, utf8("epoch"), utf8("0")));
            producer.flush();
            producer.send(record("edges", 0L, utf8("epoch"), utf8("0")));
            producer.send(record("edges", BASE_MS, utf8("epoch"), utf8("now")));
            producer.flush();
        }
    }

    static void appendTime(String bootstrap, String topic, String codec) {
        Random random = new Random(19);
        try (var producer = producer(bootstrap, "compression.type", codec)) {
            for (int i = 0; i < 90; i++) {
                String user = user(random);
                producer.send(record(topic, BASE_MS + 7L * i, utf8(user), utf8(activity(random, user, BASE_MS + 7L * i))));
                if (i % 15 == 14) producer.flush();
            }
        }
    }

    /** Two producers take turns, one commits and one aborts, so that their batches and markers interleave. */
    static void transactions(String bootstrap) {
        Random random = new Random(23);
        try (var orders = producer(bootstrap, "transactional.id", "orders");
             var refunds = producer(bootstrap, "transactional.id", "refunds", "compression.type", "lz4")) {
            orders.initTransactions();
            refunds.initTransactions();
            for (int round = 0; round < 6; round++) {
                orders.beginTransaction();
                refunds.beginTransaction();
                for (int i = 0; i < 5 + 3 * round; i++) {
                    long timestampMs = BASE_MS + 1000L * round + 10L * i;
                    String user = user(random);
                    orders.send(record("transactions", timestampMs, utf8(user), utf8(activity(random, user, timestampMs))));
                    refunds.send(record("transactions", timestampMs, utf8(user), utf8("{\"refund\":\"" + user + "\",\"cents\":" + random.nextInt(5000) + "}")));
                }
                orders.flush();
                refunds.flush();
                orders.sendOffsetsToTransaction(
                    Map.of(new TopicPartition("activity-none", 0), new OffsetAndMetadata(10L * round)), new ConsumerGroupMetadata("orders"));
                orders.commitTransaction();
                if (round % 2 == 0) refunds.abortTransaction(); else refunds.commitTransaction();
            }
        }
    }

    /**
     * Keys written again and again, and tombstones: the cleaner leaves holes between offsets and sets delete horizons.
     * A producer whose one batch is wholly overwritten leaves an empty batch behind.
     */
    static void changelog(String bootstrap) {
        Random random = new Random(29);
        try (var early = producer(bootstrap)) {
            for (int i = 0; i < 5; i++) early.send(record("changelog", BASE_MS + i, utf8(String.format("account-%04d", i)), utf8("{\"balance\":0}")));
        }
        try (var producer = producer(bootstrap)) {
            for (int i = 0; i < 1100; i++) {
                int account = i < 5 ? i : (int) (200 * Math.pow(random.nextDouble(), 2));
                byte[] value = i > 5 && random.nextInt(7) == 0 ? null
                    : utf8(String.format("{\"balance\":%d,\"currency\":\"EUR\",\"updated\":\"%s\"}", random.nextInt(1_000_000), Instant.ofEpochMilli(BASE_MS + 3_000L * i)));
                producer.send(record("changelog", BASE_MS + 3_000L * i, utf8(String.format("account-%04d", account)), value));
                if (i % 20 == 19) producer.flush();
            }
        }
    }

    /** A consumer group that commits often, so that __consumer_offsets has what a group leaves there. */
    static void commitOffsets(String bootstrap) throws Exception {
        Collection<String> topics = List.of("activity-none", "activity-zstd", "telemetry");
        try (var consumer = consumer(bootstrap, "dashboard")) {
            consumer.subscribe(topics);
            int seen = 0;
            long deadlineMs = System.currentTimeMillis() + 60_000;
            while (seen < 1500) {
                if (System.currentTimeMillis() > deadlineMs) throw new IllegalStateException("only " + seen + " of 1500 records came back");
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                seen += records.count();
                if (!records.isEmpty()) consumer.commitSync();
            }
        }
        try (var consumer = consumer(bootstrap, "one-off"); Admin admin = Admin.create(client(bootstrap))) {
            TopicPartition partition = new TopicPartition("edges", 0);
            consumer.assign(List.of(partition));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(3, "replay from here")));
            consumer.unsubscribe();
            admin.deleteConsumerGroups(List.of("one-off")).all().get();
        }
    }

    static void facts(File out, String[] files) throws Exception {
        Map<String, List<Object>> facts = new LinkedHashMap<>();
        for (String file : files) {
            List<Object> rows = new ArrayList<>();
            try (FileRecords records = FileRecords.open(new File(file), false)) {
                for (RecordBatch batch : records.batches()) {
                    for (Record record : batch) {
                        List<List<Object>> headers = new ArrayList<>();
                        for (Header header : record.headers()) headers.add(Arrays.asList(header.key(), hash(header.value())));
                        rows.add(Arrays.asList(record.offset(), record.timestamp(), hash(bytes(record.key())), hash(bytes(record.value())), headers));
                    }
                }
            }
            facts.put(new File(file).getName(), rows);
        }
        new ObjectMapper().writeValue(out, facts);
    }

    static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null) return null;
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    /** The first 8 bytes of SHA-256, in hexadecimal; null stays null. */
    static String hash(byte[] bytes) throws Exception {
        if (bytes == null) return null;
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes), 0, 8);
    }
}

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Three jobs, all done by Apache Kafka's own classes:
 *   produce BOOTSTRAP       fills the topics of record.py's list through a running broker
 *   older BOOTSTRAP         the same for topics of older message formats, through a broker that has them
 *   facts OUT FILE...       writes to OUT, as JSON, every batch and record of every file as FileRecords reads it
 * Contents are seeded. Batches end where we flush (or at batch.size), so they do not depend on this machine's speed.
 */
class Recorder {
    static final long BASE_MS = Instant.parse("2026-03-02T09:00:00Z").toEpochMilli();
    static final String[] EVENTS = {"page_view", "page_view", "page_view", "click", "search", "add_to_cart", "checkout"};
    static final String[] COUNTRIES = {"DE", "FR", "US", "US", "GB", "JP", "BR", "IN"};
    static final String[] DEVICES = {"mobile", "mobile", "desktop", "tablet"};
    /** message.format.version of each format, and the codecs that all of them have. */
    static final Map<String, String> VERSIONS = Map.of("v0", "0.9.0", "v1", "0.10.2", "v2", "2.8");
    static final List<String> OLDER_CODECS = List.of("none", "gzip", "snappy", "lz4");

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "produce" -> produce(arguments[1]);
            case "older" -> older(arguments[1]);
            default -> facts(new File(arguments[1]), Arrays.copyOfRange(arguments, 2, arguments.length));
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
        if (group != null) properties.put("group.id", group);
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
        topics.put("changelog-transactions", Map.of("cleanup.policy", "compact", "segment.bytes", "16384", "min.cleanable.dirty.ratio", "0.01"));
        create(bootstrap, topics);
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) activities(bootstrap, "activity-" + codec, 600, "compression.type", codec);
        serviceHeaders(bootstrap);
        telemetry(bootstrap);
        edges(bootstrap);
        appendTime(bootstrap, "append-time", 90, "compression.type", "none");
        appendTime(bootstrap, "append-time-zstd", 90, "compression.type", "zstd");
        transactions(bootstrap);
        changelog(bootstrap);
        transactionalChangelog(bootstrap);
        commitOffsets(bootstrap, 1500, "edges", "activity-none", "activity-zstd", "telemetry");
    }

    static void create(String bootstrap, Map<String, Map<String, String>> topics) throws Exception {
        try (Admin admin = Admin.create(client(bootstrap))) {
            List<NewTopic> created = new ArrayList<>();
            topics.forEach((name, configs) -> created.add(new NewTopic(name, 1, (short) 1).configs(configs)));
            admin.createTopics(created).all().get();
        }
    }

    /** The same records in every codec, from an idempotent producer; 1 to 60 records between two flushes. */
    static void activities(String bootstrap, String topic, int left, String... settings) {
        Random random = new Random(7);
        long timestampMs = BASE_MS;
        try (var producer = producer(bootstrap, settings)) {
            while (left > 0) {
                int count = Math.min(left, 1 + (int) (60 * Math.pow(random.nextDouble(), 2)));
                for (int i = 0; i < count; i++) {
                    timestampMs += (long) (-20 * Math.log(1 - random.nextDouble()));
                    String user = user(random);
                    producer.send(record(topic, timestampMs, utf8(user), utf8(activity(random, user, timestampMs))));
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

    static void appendTime(String bootstrap, String topic, int count, String... settings) {
        Random random = new Random(19);
        try (var producer = producer(bootstrap, settings)) {
            for (int i = 0; i < count; i++) {
                String user = user(random);
                producer.send(record(topic, BASE_MS + 7L * i, utf8(user), utf8(activity(random, user, BASE_MS + 7L * i))));
                if (i % 15 == 14) producer.flush();
            }
        }
    }

    /** Two producers take turns, one commits and one aborts, so that their batches and markers interleave. */
    static void transactions(String bootstrap) throws Exception {
        Random random = new Random(23);
        try (Admin admin = Admin.create(client(bootstrap));
             var orders = producer(bootstrap, "transactional.id", "orders");
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
                awaitMarkers(admin, new TopicPartition("transactions", 0));
            }
        }
    }

    /** Waits for the markers of all transactions: a coordinator writes them after it has answered the producer. */
    static void awaitMarkers(Admin admin, TopicPartition partition) throws Exception {
        long deadlineMs = System.currentTimeMillis() + 60_000;
        while (endOffset(admin, partition, IsolationLevel.READ_COMMITTED) < endOffset(admin, partition, IsolationLevel.READ_UNCOMMITTED)) {
            if (System.currentTimeMillis() > deadlineMs) throw new IllegalStateException(partition + " lacks markers");
            Thread.sleep(5);
        }
    }

    static long endOffset(Admin admin, TopicPartition partition, IsolationLevel isolation) throws Exception {
        return admin.listOffsets(Map.of(partition, OffsetSpec.latest()), new ListOffsetsOptions(isolation)).partitionResult(partition).get().offset();
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

    /**
     * Every third transaction is aborted. The cleaner comes twice: it takes records, and then sets a delete horizon for
     * markers that have none left. One producer, as a second one's markers would come at any time.
     */
    static void transactionalChangelog(String bootstrap) {
        Random random = new Random(31);
        try (var producer = producer(bootstrap, "transactional.id", "ledger")) {
            producer.initTransactions();
            for (int round = 0; round < 100; round++) {
                if (round == 50) awaitHole(bootstrap, new TopicPartition("changelog-transactions", 0), 2);
                producer.beginTransaction();
                for (int i = 0; i < 1 + round % 7; i++) {
                    int account = (int) (40 * Math.pow(random.nextDouble(), 2));
                    byte[] value = random.nextInt(9) == 0 ? null : utf8(String.format("{\"balance\":%d,\"round\":%d}", random.nextInt(1_000_000), round));
                    producer.send(record("changelog-transactions", BASE_MS + 1_000L * round + i, utf8(String.format("account-%04d", account)), value,
                        new RecordHeader("round", utf8(Integer.toString(round)))));
                }
                producer.flush();
                if (round % 3 == 2) producer.abortTransaction(); else producer.commitTransaction();
            }
        }
    }

    static void awaitHole(String bootstrap, TopicPartition partition, long offset) {
        try (var consumer = consumer(bootstrap, null)) {
            consumer.assign(List.of(partition));
            long deadlineMs = System.currentTimeMillis() + 60_000, found = offset;
            while (found == offset) {
                if (System.currentTimeMillis() > deadlineMs) throw new IllegalStateException(partition + " was not compacted");
                consumer.seek(partition, offset);
                for (var record : consumer.poll(Duration.ofMillis(200)).records(partition)) {
                    found = record.offset();
                    break;
                }
            }
        }
    }

    /** A consumer group that commits often, so that __consumer_offsets has what a group leaves there. */
    static void commitOffsets(String bootstrap, int count, String other, String... topics) throws Exception {
        try (var consumer = consumer(bootstrap, "dashboard")) {
            consumer.subscribe(List.of(topics));
            int seen = 0;
            long deadlineMs = System.currentTimeMillis() + 60_000;
            while (seen < count) {
                if (System.currentTimeMillis() > deadlineMs) throw new IllegalStateException("only " + seen + " of " + count + " records came back");
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                seen += records.count();
                if (!records.isEmpty()) consumer.commitSync();
            }
        }
        try (var consumer = consumer(bootstrap, "one-off"); Admin admin = Admin.create(client(bootstrap))) {
            TopicPartition partition = new TopicPartition(other, 0);
            consumer.assign(List.of(partition));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(3, "replay from here")));
            consumer.unsubscribe();
            admin.deleteConsumerGroups(List.of("one-off")).all().get();
        }
    }

    /** Topics in v0, in v1, and upgraded midway. No idempotence there: those formats have no producer ids. */
    static void older(String bootstrap) throws Exception {
        Map<String, Map<String, String>> topics = new LinkedHashMap<>();
        for (String format : List.of("v0", "v1")) {
            for (String codec : OLDER_CODECS) topics.put("activity-" + format + "-" + codec, in(format));
            topics.put("edges-" + format, in(format));
            topics.put("changelog-" + format, in(format, "cleanup.policy", "compact", "segment.bytes", "12288", "min.cleanable.dirty.ratio", "0.01"));
        }
        topics.put("append-time-v1", in("v1", "message.timestamp.type", "LogAppendTime"));
        topics.put("older-producer-v1", in("v1"));
        topics.put("older-producer-append-time-v1", in("v1", "message.timestamp.type", "LogAppendTime"));
        topics.put("upgraded", in("v0"));
        topics.put("changelog-upgraded", in("v0", "cleanup.policy", "compact", "segment.bytes", "16384", "min.cleanable.dirty.ratio", "0.01"));
        topics.put("changelog-upgraded-uncompacted", in("v0", "segment.bytes", "16384"));
        topics.put("__consumer_offsets", in("v0", "cleanup.policy", "compact"));
        create(bootstrap, topics);
        for (String format : List.of("v0", "v1")) {
            for (String codec : OLDER_CODECS) activities(bootstrap, "activity-" + format + "-" + codec, 100, plain(codec));
            olderEdges(bootstrap, "edges-" + format);
            olderChangelog(bootstrap, "changelog-" + format, format);
        }
        for (String codec : OLDER_CODECS) appendTime(bootstrap, "append-time-v1", 15, plain(codec));
        upgraded(bootstrap);
        olderChangelog(bootstrap, "changelog-upgraded", "v0", "v1", "v2");
        olderChangelog(bootstrap, "changelog-upgraded-uncompacted", "v0", "v1", "v2");
        commitOffsets(bootstrap, 100, "edges-v1", "activity-v1-none");
        upgrade(bootstrap, "__consumer_offsets", "v1");
        commitOffsets(bootstrap, 100, "edges-v1", "activity-v1-gzip");
        upgrade(bootstrap, "__consumer_offsets", "v2");
        commitOffsets(bootstrap, 100, "edges-v1", "activity-v1-lz4");
    }

    static Map<String, String> in(String format, String... settings) {
        Map<String, String> configs = new LinkedHashMap<>(Map.of("message.format.version", VERSIONS.get(format)));
        for (int i = 0; i < settings.length; i += 2) configs.put(settings[i], settings[i + 1]);
        return configs;
    }

    static String[] plain(String codec) {
        return new String[] {"compression.type", codec, "enable.idempotence", "false"};
    }

    /**
     * Sets a topic's format. The broker learns of altered topics one after another, so it has this one's as soon as a
     * topic that is altered next refuses a record.
     */
    static void upgrade(String bootstrap, String topic, String format) throws Exception {
        String probe = "probe-" + topic + "-" + format;
        try (Admin admin = Admin.create(client(bootstrap)); var producer = producer(bootstrap, "linger.ms", "0", "enable.idempotence", "false")) {
            producer.send(record(probe, BASE_MS, null, null)).get();
            alter(admin, topic, "message.format.version", VERSIONS.get(format));
            alter(admin, probe, "max.message.bytes", "1");
            while (true) producer.send(record(probe, BASE_MS, null, null)).get();
        } catch (ExecutionException failed) {
            if (!(failed.getCause() instanceof RecordTooLargeException)) throw failed;
        }
    }

    static void alter(Admin admin, String topic, String name, String value) throws Exception {
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, topic),
            List.of(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)))).all().get();
    }

    /** In each codec: nulls and empty keys and values, timestamps that go back, and a value of more than one block of its codec. */
    static void olderEdges(String bootstrap, String topic) {
        Random random = new Random(17);
        long[] stepsMs = {0, 1, -1, 86_400_000, -86_400_000};
        byte[] blocks = new byte[70_000];
        for (int i = 0; i < blocks.length; i++) blocks[i] = (byte) (i % 251);
        for (String codec : OLDER_CODECS) {
            try (var producer = producer(bootstrap, plain(codec))) {
                for (int length : new int[] {0, 1, 255, 256}) {
                    byte[] filled = new byte[length];
                    random.nextBytes(filled);
                    producer.send(record(topic, BASE_MS, null, filled));
                    producer.send(record(topic, BASE_MS, filled, null));
                    producer.send(record(topic, BASE_MS, filled, filled));
                    producer.send(record(topic, BASE_MS, null, null));
                }
                producer.flush();
                for (long step : stepsMs) producer.send(record(topic, BASE_MS + step, utf8("step"), utf8(Long.toString(step))));
                producer.send(record(topic, 0L, utf8("epoch"), utf8("0")));
                producer.flush();
                producer.send(record(topic, 0L, utf8("epoch"), utf8("0")));
                producer.flush();
                if (!codec.equals("none")) producer.send(record(topic, BASE_MS, null, blocks));
            }
        }
    }

    /** As `changelog`, codec after codec, upgraded from one format to the next: holes inside compressed sets and between messages. */
    static void olderChangelog(String bootstrap, String topic, String... formats) throws Exception {
        Random random = new Random(29);
        long timestampMs = BASE_MS;
        for (String format : formats) {
            if (!format.equals(formats[0])) upgrade(bootstrap, topic, format);
            try (var none = producer(bootstrap, plain("none")); var gzip = producer(bootstrap, plain("gzip"));
                 var snappy = producer(bootstrap, plain("snappy")); var lz4 = producer(bootstrap, plain("lz4"))) {
                for (int i = 0; i < 360 / formats.length; i++) {
                    timestampMs += 3_000;
                    byte[] value = random.nextInt(7) == 0 ? null
                        : utf8(String.format("{\"balance\":%d,\"updated\":\"%s\"}", random.nextInt(1_000_000), Instant.ofEpochMilli(timestampMs)));
                    int account = (int) (60 * Math.pow(random.nextDouble(), 2));
                    var producer = List.of(none, gzip, snappy, lz4).get(i / 10 % 4);
                    producer.send(record(topic, timestampMs, utf8(String.format("account-%04d", account)), value));
                    if (i % 10 == 9) producer.flush();
                }
            }
        }
    }

    /** v0, then v1, then v2 with headers, zstd and transactions, in one segment. */
    static void upgraded(String bootstrap) throws Exception {
        String topic = "upgraded";
        activities(bootstrap, topic, 8, plain("none"));
        activities(bootstrap, topic, 8, plain("gzip"));
        upgrade(bootstrap, topic, "v1");
        activities(bootstrap, topic, 8, plain("none"));
        activities(bootstrap, topic, 8, plain("lz4"));
        upgrade(bootstrap, topic, "v2");
        activities(bootstrap, topic, 8, plain("none"));
        activities(bootstrap, topic, 8, "compression.type", "zstd");
        try (var producer = producer(bootstrap, "transactional.id", "upgraded")) {
            producer.initTransactions();
            for (int round = 0; round < 4; round++) {
                producer.beginTransaction();
                for (int i = 0; i <= round; i++) {
                    producer.send(record(topic, BASE_MS + round, utf8("round"), utf8(Integer.toString(round)),
                        new RecordHeader("attempt", utf8(Integer.toString(i))), new RecordHeader("tenant", (byte[]) null)));
                }
                producer.flush();
                if (round % 2 == 0) producer.commitTransaction(); else producer.abortTransaction();
            }
        }
    }

    static void facts(File out, String[] files) throws Exception {
        Map<String, Map<String, List<Object>>> facts = new LinkedHashMap<>();
        for (String file : files) {
            List<Object> batches = new ArrayList<>(), rows = new ArrayList<>();
            try (FileRecords records = FileRecords.open(new File(file), false)) {
                for (RecordBatch batch : records.batches()) {
                    int before = rows.size();
                    for (Record record : batch) {
                        List<List<Object>> headers = new ArrayList<>();
                        for (Header header : record.headers()) headers.add(Arrays.asList(header.key(), hash(header.value())));
                        rows.add(Arrays.asList(record.offset(), record.timestamp(), hash(bytes(record.key())), hash(bytes(record.value())), headers));
                    }
                    Map<String, Object> fields = new LinkedHashMap<>();
                    fields.put("base_offset", batch.baseOffset());
                    fields.put("last_offset", batch.lastOffset());
                    fields.put("count", rows.size() - before);
                    fields.put("base_sequence", batch.baseSequence());
                    fields.put("last_sequence", batch.lastSequence());
                    fields.put("producer_id", batch.producerId());
                    fields.put("producer_epoch", batch.producerEpoch());
                    fields.put("partition_leader_epoch", batch.partitionLeaderEpoch());
                    fields.put("is_transactional", batch.isTransactional());
                    fields.put("is_control", batch.isControlBatch());
                    fields.put("delete_horizon_ms", batch.deleteHorizonMs().orElse(-1));
                    batches.add(fields);
                }
            }
            facts.put(new File(file).getName(), Map.of("batches", batches, "records", rows));
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

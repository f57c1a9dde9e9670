package profile;

import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A client under load: `produce PROPERTIES TOPIC PARTITIONS RECORDS BATCH ROUNDS` or
 * `consume PROPERTIES TOPIC PARTITIONS`. It prints `ready`. Each line of its input is answered with the number of
 * records so far; the line `pace` also makes the producer keep to ROUNDS per second. The end of the input ends it.
 *
 * A round of the producer is one batch of BATCH records per partition, sent by a flush in one request. Before `pace`
 * rounds follow one another at once, so that the broker's hot code is compiled.
 */
final class Client {
    private static final AtomicLong RECORDS = new AtomicLong();
    private static final int MOST_LATE = 10; // rounds that are sent late after a pause, all others are left out
    private static volatile boolean paced;
    private static volatile boolean ended;

    public static void main(String[] arguments) throws Exception {
        var properties = new Properties();
        try (var file = Files.newBufferedReader(Path.of(arguments[1]))) {
            properties.load(file);
        }
        var topic = arguments[2];
        var partitions = Integer.parseInt(arguments[3]);
        if (arguments[0].equals("produce")) {
            var records = records(arguments[4]);
            produce(properties, topic, partitions, records, Integer.parseInt(arguments[5]), Integer.parseInt(arguments[6]));
        } else
            consume(properties, topic, partitions);
    }

    private record Entry(byte[] key, byte[] value) { }

    private static List<Entry> records(String path) throws Exception {
        try (var file = new DataInputStream(new FileInputStream(path))) {
            List<Entry> found = new ArrayList<>();
            for (int left = file.readInt(); left > 0; left--) found.add(new Entry(bytes(file), bytes(file)));
            return found;
        }
    }

    private static byte[] bytes(DataInputStream file) throws Exception {
        int length = file.readInt();
        return length < 0 ? null : file.readNBytes(length);
    }

    private static void answer() {
        System.out.println("ready");
        var thread = new Thread(() -> {
            try (var requests = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line; (line = requests.readLine()) != null; System.out.println(RECORDS.get()))
                    paced |= line.equals("pace");
            } catch (Exception error) {
                error.printStackTrace();
            }
            ended = true;
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void produce(
            Properties properties, String topic, int partitions, List<Entry> entries, int batch, int rounds)
            throws Exception {
        try (var admin = Admin.create(properties)) {
            admin.createTopics(List.of(new NewTopic(topic, Optional.of(partitions), Optional.of((short) 1)))).all().get();
        }
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            answer();
            long step = 1_000_000_000L / rounds, due = System.nanoTime();
            for (int next = 0; !ended; ) {
                for (int partition = 0; partition < partitions; partition++)
                    for (int i = 0; i < batch; i++) {
                        var entry = entries.get(next++ % entries.size());
                        producer.send(new ProducerRecord<>(topic, partition, entry.key(), entry.value()));
                    }
                if (next > 1 << 30) next %= entries.size();
                producer.flush();
                RECORDS.addAndGet((long) partitions * batch);
                if (!paced) continue;
                due = Math.max(due + step, System.nanoTime() - MOST_LATE * step);
                for (long rest; (rest = due - System.nanoTime()) > 0 && !ended; ) LockSupport.parkNanos(rest);
            }
        }
    }

    private static void consume(Properties properties, String topic, int partitions) throws Exception {
        try (var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            var deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
            for (var found = consumer.partitionsFor(topic); found == null || found.size() < partitions; ) {
                if (System.nanoTime() > deadline) throw new IllegalStateException("no topic after 60 s");
                Thread.sleep(50);
                found = consumer.partitionsFor(topic);
            }
            List<TopicPartition> assigned = new ArrayList<>();
            for (int partition = 0; partition < partitions; partition++)
                assigned.add(new TopicPartition(topic, partition));
            consumer.assign(assigned);
            consumer.seekToBeginning(assigned);
            answer();
            while (!ended) RECORDS.addAndGet(consumer.poll(Duration.ofMillis(100)).count());
        }
    }
}

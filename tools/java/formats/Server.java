package kfbench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/**
 * A JSON request per line on standard input, a JSON answer per line on standard output. Bytes are hexadecimal.
 *
 * <ul>
 * <li>`write`: format, codec and batches. Answer: bytes.
 * <li>`read`: bytes. Answer: the fields and records of each batch, `skimmed` (offsets and times from the reader that skips
 *     payload) and `largest` (the largest time according to the checks on append, or their refusal).
 * </ul>
 *
 * <p>The answer has `refused` where Kafka's own exceptions refuse bytes, and `failed` where the program is at fault.
 */
final class Server {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final Wire.Codec[] CODECS = new Wire.Codec[5];

    public static void main(String[] arguments) throws IOException {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line; (line = requests.readLine()) != null; ) {
            Map<String, Object> answer;
            try {
                answer = answer(MAPPER.readTree(line));
            } catch (KafkaException refusal) {
                answer = Map.of("refused", refusal.toString());
            } catch (RuntimeException fault) {
                answer = Map.of("failed", fault.toString());
            }
            answers.println(MAPPER.writeValueAsString(answer));
            answers.flush();
        }
    }

    private static Map<String, Object> answer(JsonNode request) {
        return switch (request.get("op").asText()) {
            case "write" -> Map.of("bytes", HEX.formatHex(write(request)));
            case "read" -> Map.of("batches", read(HEX.parseHex(request.get("bytes").asText())));
            case "version" -> Map.of("kafka", Wire.kafkaVersion());
            default -> throw new IllegalArgumentException(request.get("op").asText());
        };
    }

    static Wire.Codec codec(int id) {
        if (id >= CODECS.length) throw Batch.refused("codec " + id);
        return CODECS[id] == null ? CODECS[id] = new Wire.Codec(id, true) : CODECS[id];
    }

    private static byte[] write(JsonNode request) {
        List<ByteBuffer> batches = new ArrayList<>();
        int bytes = 0;
        Wire.Codec codec = codec(Wire.codecId(request.get("codec").asText()));
        for (JsonNode batch : request.get("batches")) {
            Builder builder = Builder.of(request.get("format").asText(), new Wire.Output(64), codec, fields(batch, codec.id));
            for (JsonNode record : batch.get("records"))
                builder.append(record.get("offset").asLong(), record.get("timestamp").asLong(), bytes(record.get("key")), bytes(record.get("value")),
                    headers(record.get("headers")));
            batches.add(builder.build());
            bytes += batches.get(batches.size() - 1).limit();
        }
        ByteBuffer log = ByteBuffer.allocate(bytes);
        batches.forEach(log::put);
        return log.array();
    }

    /** The batch as an arm wants it, with room for it in any format. */
    static Arm.Task task(JsonNode batch, int codec) {
        JsonNode records = batch.get("records");
        int n = records.size(), room = 1 << 10;
        Arm.Task task = new Arm.Task(fields(batch, codec), new long[n], new long[n], new byte[n][], new byte[n][], new Header[n][], 0);
        for (int i = 0; i < n; i++) {
            JsonNode record = records.get(i);
            task.offsets()[i] = record.get("offset").asLong();
            task.timestamps()[i] = record.get("timestamp").asLong();
            task.keys()[i] = bytes(record.get("key"));
            task.values()[i] = bytes(record.get("value"));
            task.headers()[i] = headers(record.get("headers"));
            room += 64 + 2 * record.toString().length();
        }
        return new Arm.Task(task.fields(), task.offsets(), task.timestamps(), task.keys(), task.values(), task.headers(), room);
    }

    private static Fields fields(JsonNode batch, int codec) {
        return new Fields(codec, batch.path("transactional").asBoolean(), batch.path("control").asBoolean(), batch.path("producerId").asLong(-1),
            (short) batch.path("producerEpoch").asInt(-1), batch.path("baseSequence").asInt(-1), batch.path("partitionLeaderEpoch").asInt(-1),
            number(batch, "appendTime"), number(batch, "deleteHorizonMs"), number(batch, "baseOffset"), number(batch, "lastOffset"),
            number(batch, "baseTimestamp"), number(batch, "maxTimestamp"));
    }

    private static Long number(JsonNode batch, String name) { return batch.hasNonNull(name) ? batch.get(name).asLong() : null; }

    private static byte[] bytes(JsonNode hex) { return hex == null || hex.isNull() ? null : HEX.parseHex(hex.asText()); }

    private static Header[] headers(JsonNode pairs) {
        List<Header> headers = new ArrayList<>();
        if (pairs != null) pairs.forEach(pair -> headers.add(new RecordHeader(pair.get(0).asText(), bytes(pair.get(1)))));
        return headers.toArray(Entry.NO_HEADERS);
    }

    private static List<Map<String, Object>> read(byte[] log) {
        List<Map<String, Object>> rows = new ArrayList<>();
        for (Batch batch : Batch.all(ByteBuffer.wrap(log))) {
            batch.ensureValid();
            Map<String, Object> row = describe(batch);
            List<Object> records = new ArrayList<>(), skimmed = new ArrayList<>();
            try (Batch.Records each = batch.records(codec(batch.codec()))) {
                each.forEachRemaining(entry -> records.add(describe(entry)));
            }
            try (Batch.Records each = batch.skim(codec(batch.codec()))) {
                each.forEachRemaining(entry -> skimmed.add(List.of(entry.offset(), entry.timestamp())));
            }
            row.put("records", records);
            row.put("skimmed", skimmed);
            try {
                row.put("largest", batch.checkRecords(codec(batch.codec()), Long.MIN_VALUE, Long.MAX_VALUE));
            } catch (KafkaException refusal) {
                row.put("largest", refusal.getMessage());
            }
            rows.add(row);
        }
        return rows;
    }

    private static Map<String, Object> describe(Batch batch) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("size", batch.sizeInBytes());
        row.put("codec", batch.codec());
        row.put("baseOffset", batch.baseOffset());
        row.put("lastOffset", batch.lastOffset());
        row.put("baseTimestamp", batch.baseTimestamp());
        row.put("maxTimestamp", batch.maxTimestamp());
        row.put("producerId", batch.producerId());
        row.put("producerEpoch", batch.producerEpoch());
        row.put("baseSequence", batch.baseSequence());
        row.put("partitionLeaderEpoch", batch.leaderEpoch());
        row.put("isAppendTime", batch.has(Batch.APPEND_TIME));
        row.put("isTransactional", batch.has(Batch.TRANSACTIONAL));
        row.put("isControl", batch.has(Batch.CONTROL));
        row.put("hasHorizon", batch.has(Batch.HORIZON));
        return row;
    }

    private static Map<String, Object> describe(Entry entry) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("offset", entry.offset());
        row.put("timestamp", entry.timestamp());
        row.put("key", hex(entry.key()));
        row.put("value", hex(entry.value()));
        List<List<String>> headers = new ArrayList<>();
        for (Header header : entry.headers()) {
            List<String> pair = new ArrayList<>(List.of(header.key()));
            pair.add(header.value() == null ? null : HEX.formatHex(header.value()));
            headers.add(pair);
        }
        row.put("headers", headers);
        return row;
    }

    private static String hex(ByteBuffer item) {
        if (item == null) return null;
        byte[] content = new byte[item.remaining()];
        item.duplicate().get(content);
        return HEX.formatHex(content);
    }

    private Server() { }
}

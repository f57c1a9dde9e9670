package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;

/** One JSON object of a request, with Kafka's types and Kafka's defaults. */
record Spec(JsonNode node) {
    private static final HexFormat HEX = HexFormat.of();

    /** A record to write. {@code offset} null: one more than the record before. */
    record Entry(Long offset, long timestamp, byte magic, byte[] key, byte[] value, Header[] headers) { }

    String text(String name) {
        if (!node.hasNonNull(name)) throw new IllegalArgumentException("the request has no " + name);
        return node.get(name).asText();
    }

    String text(String name, String other) {
        return node.hasNonNull(name) ? node.get(name).asText() : other;
    }

    long number(String name, long other) {
        return node.hasNonNull(name) ? node.get(name).asLong() : other;
    }

    boolean has(String name) {
        return node.hasNonNull(name);
    }

    boolean flag(String name) {
        return node.hasNonNull(name) && node.get(name).asBoolean();
    }

    Spec child(String name) {
        return new Spec(node.get(name));
    }

    List<Spec> list(String name) {
        List<Spec> specs = new ArrayList<>();
        if (node.hasNonNull(name)) node.get(name).forEach(item -> specs.add(new Spec(item)));
        return specs;
    }

    /** Hexadecimal; absent or null is null. */
    byte[] bytes(String name) {
        return bytes(node.get(name));
    }

    private static byte[] bytes(JsonNode hex) {
        return hex == null || hex.isNull() ? null : HEX.parseHex(hex.asText());
    }

    Compression compression(String name) {
        CompressionType type = CompressionType.forName(text(name, "none"));
        if (!node.hasNonNull("level")) return Compression.of(type).build();
        int level = node.get("level").asInt();
        return switch (type) {
            case GZIP -> Compression.gzip().level(level).build();
            case LZ4 -> Compression.lz4().level(level).build();
            case ZSTD -> Compression.zstd().level(level).build();
            default -> throw new IllegalArgumentException(type + " has no levels");
        };
    }

    /** What "timestampType" names; else the magic's own. */
    TimestampType timestampType(long magic) {
        return node.hasNonNull("timestampType") ? TimestampType.valueOf(text("timestampType"))
            : magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME;
    }

    List<Entry> records(byte magic) {
        List<Entry> entries = new ArrayList<>();
        for (Spec record : list("records")) {
            List<Header> headers = new ArrayList<>();
            if (record.node.hasNonNull("headers"))
                record.node.get("headers").forEach(pair -> headers.add(new RecordHeader(pair.get(0).asText(), bytes(pair.get(1)))));
            entries.add(new Entry(
                record.has("offset") ? record.number("offset", 0) : null,
                record.number("timestamp", RecordBatch.NO_TIMESTAMP), (byte) record.number("magic", magic),
                record.bytes("key"), record.bytes("value"), headers.toArray(new Header[0])));
        }
        return entries;
    }
}

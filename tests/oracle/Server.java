package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/**
 * A JSON request a line on standard input; a JSON answer a line on standard output. Bytes are hexadecimal. Where a line is
 * a list of requests, so is the answer: lines are what takes long.
 */
final class Server {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line; (line = requests.readLine()) != null; ) {
            JsonNode asked = MAPPER.readTree(line);
            answers.println(MAPPER.writeValueAsString(asked.isArray() ? all(asked) : judged(asked)));
            answers.flush();
        }
    }

    private static List<Map<String, Object>> all(JsonNode requests) {
        List<Map<String, Object>> answers = new ArrayList<>();
        requests.forEach(request -> answers.add(judged(request)));
        return answers;
    }

    private static Map<String, Object> judged(JsonNode request) {
        try {
            return answer(new Spec(request));
        } catch (Throwable failure) { // for the client to judge, whatever it is
            return Map.of("failed", failure.toString());
        }
    }

    private static Map<String, Object> answer(Spec request) throws IOException {
        byte[] bytes = request.bytes("bytes");
        return switch (request.text("op")) {
            case "read" -> Reader.read(bytes);
            case "write" -> answer(new Broker.Result(Writer.write(request.list("batches")), Map.of()));
            case "compress" -> answer(new Broker.Result(Writer.compress(bytes, request.compression("compression")), Map.of()));
            case "stamp" -> answer(Broker.stamp(bytes, request));
            case "convert" -> answer(Broker.attempted(() -> Versioned.convert(bytes, request)));
            case "compact" -> answer(Broker.attempted(() -> Broker.compact(bytes, request)));
            case "validate" -> answer(Broker.attempted(() -> Broker.validate(bytes, request)));
            default -> throw new IllegalArgumentException(request.text("op"));
        };
    }

    private static Map<String, Object> answer(Broker.Result result) {
        Map<String, Object> answer = new HashMap<>(result.notes());
        answer.put("bytes", HexFormat.of().formatHex(result.bytes()));
        return answer;
    }

    private Server() { }
}

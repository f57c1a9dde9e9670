package oracle;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

/** A JSON request a line on standard input; a JSON answer a line on standard output. Bytes are hexadecimal. */
final class Server {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line; (line = requests.readLine()) != null; ) {
            Map<String, Object> answer;
            try {
                answer = answer(new Spec(MAPPER.readTree(line)));
            } catch (Throwable failure) { // for the client to judge, whatever it is
                answer = Map.of("failed", failure.toString());
            }
            answers.println(MAPPER.writeValueAsString(answer));
            answers.flush();
        }
    }

    private static Map<String, Object> answer(Spec request) {
        byte[] bytes = request.bytes("bytes");
        return switch (request.text("op")) {
            case "read" -> Reader.read(bytes);
            case "write" -> answer(new Broker.Result(Writer.write(request.list("batches")), Map.of()));
            case "stamp" -> answer(Broker.stamp(bytes, request));
            case "convert" -> answer(Broker.convert(bytes, request));
            case "compact" -> answer(Broker.compact(bytes, request));
            case "validate" -> answer(Broker.validate(bytes, request));
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

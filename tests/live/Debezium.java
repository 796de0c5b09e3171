import com.fasterxml.jackson.databind.ObjectMapper;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.FileReader;
import java.io.FileWriter;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;

/** Writes what Debezium tells, with the settings of a file of properties, to the end of another file: a line for each record. */
public class Debezium {
    public static void main(String[] files) throws Exception {
        Properties settings = new Properties();
        try (FileReader reader = new FileReader(files[0])) {
            settings.load(reader);
        }
        ObjectMapper json = new ObjectMapper();
        FileWriter out = new FileWriter(files[1], true);
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
            .using(settings)
            .notifying((records, committer) -> {
                StringBuilder lines = new StringBuilder();
                for (ChangeEvent<String, String> record : records) {
                    Map<String, Object> line = new LinkedHashMap<>();
                    line.put("topic", record.destination());
                    line.put("key", record.key());
                    line.put("value", record.value());
                    line.put("ts", System.currentTimeMillis());
                    try {
                        lines.append(json.writeValueAsString(line)).append('\n');
                    } catch (Exception error) {
                        throw new IllegalStateException(error);
                    }
                }
                try {
                    out.write(lines.toString());
                    out.flush();
                } catch (java.io.IOException error) {
                    throw new java.io.UncheckedIOException(error);
                }
                for (ChangeEvent<String, String> record : records) {
                    committer.markProcessed(record);
                }
                committer.markBatchFinished();
            })
            .build();
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                engine.close();
                main.join(8000);
            } catch (Exception error) {
                error.printStackTrace();
            }
        }));
        engine.run();
        // What ends by itself has failed.
        new Thread(() -> System.exit(1)).start();
    }
}

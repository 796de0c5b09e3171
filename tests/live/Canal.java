import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import com.alibaba.otter.canal.connector.core.producer.MQMessageUtils;
import com.alibaba.otter.canal.instance.manager.CanalInstanceWithManager;
import com.alibaba.otter.canal.instance.manager.model.Canal;
import com.alibaba.otter.canal.instance.manager.model.CanalParameter;
import com.alibaba.otter.canal.protocol.ClientIdentity;
import com.alibaba.otter.canal.protocol.FlatMessage;
import com.alibaba.otter.canal.protocol.Message;
import com.alibaba.otter.canal.server.embedded.CanalServerWithEmbedded;
import java.io.FileWriter;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.LoggerFactory;

/** Writes what Canal tells of a database at a port of this machine to the end of a file: a line for each message. */
class CanalToFile {
    static final String DESTINATION = "live";
    static volatile boolean isOver = false;

    /** Takes a port, the folder in which Canal keeps its position, and the file. */
    public static void main(String[] words) throws Exception {
        ((Logger) LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME)).setLevel(Level.WARN);
        Canal canal = new Canal();
        canal.setId(1L);
        canal.setName(DESTINATION);
        canal.setCanalParameter(parameters(Integer.parseInt(words[0]), words[1]));
        CanalServerWithEmbedded server = CanalServerWithEmbedded.instance();
        server.setCanalInstanceGenerator(destination -> new CanalInstanceWithManager(canal, "s\\..*"));
        server.start();
        server.start(DESTINATION);
        ClientIdentity client = new ClientIdentity(DESTINATION, (short) 1);
        server.subscribe(client);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            isOver = true;
            try {
                main.join(5000);
            } catch (InterruptedException error) {
                error.printStackTrace();
            }
            server.stop(DESTINATION);
        }));
        ThreadPoolExecutor pool = (ThreadPoolExecutor) Executors.newFixedThreadPool(1);
        FileWriter out = new FileWriter(words[2], true);
        while (!isOver) {
            Message message = server.getWithoutAck(client, 1000, 50L, TimeUnit.MILLISECONDS);
            if (message.getId() != -1) {
                write(message, pool, out);
                server.ack(client, message.getId());
            }
        }
    }

    static void write(Message message, ThreadPoolExecutor pool, FileWriter out) throws Exception {
        List<FlatMessage> messages = MQMessageUtils.messageConverter(MQMessageUtils.buildMessageData(message, pool), message.getId());
        for (FlatMessage one : messages) {
            out.write(JSON.toJSONString(one, JSONWriter.Feature.WriteNulls) + "\n");
        }
        out.flush();
    }

    static CanalParameter parameters(int port, String folder) {
        CanalParameter out = new CanalParameter();
        out.setMetaMode(CanalParameter.MetaMode.LOCAL_FILE);
        out.setDataDir(folder);
        out.setMetaFileFlushPeriod(100);
        out.setIndexMode(CanalParameter.IndexMode.META);
        out.setStorageMode(CanalParameter.StorageMode.MEMORY);
        out.setStorageBatchMode(CanalParameter.BatchMode.MEMSIZE);
        out.setMemoryStorageBufferSize(8192);
        out.setMemoryStorageRawEntry(true);
        out.setHaMode(CanalParameter.HAMode.HEARTBEAT);
        out.setSourcingType(CanalParameter.SourcingType.MYSQL);
        out.setDbAddresses(List.of(new InetSocketAddress("127.0.0.1", port)));
        out.setDbUsername("canal");
        out.setDbPassword("canal");
        out.setDefaultDatabaseName("s");
        out.setPositions(List.of("{\"journalName\":\"mysql-bin.000001\",\"position\":4}"));
        out.setSlaveId(1234L);
        out.setConnectionCharset("UTF-8");
        out.setConnectionCharsetNumber((byte) 33);
        out.setDefaultConnectionTimeoutInSeconds(30);
        out.setReceiveBufferSize(16384);
        out.setSendBufferSize(16384);
        out.setDetectingEnable(false);
        out.setTsdbEnable(false);
        out.setParallel(false);
        out.setGtidEnable(false);
        out.setDdlIsolation(true);
        out.setFilterTableError(false);
        return out;
    }
}

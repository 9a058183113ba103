import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.AcknowledgementCommitCallback;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.protocol.Errors;

/**
 * Share consumers of Kafka's Java client that obey commands on standard input. Each command is one line, and has one
 * line as its answer. Janino, which compiles this file, has neither lambdas nor inferred type arguments.
 */
public class ShareMembers {
    private static final Map MEMBERS = new HashMap();
    private static final Map RECORDS = new HashMap();
    private static final Map RESULTS = new HashMap();

    public static void main(String[] args) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        PrintStream answers = System.out;
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                answer = obey(line.split(" "));
            } catch (Exception problem) {
                answer = "! " + problem.toString().replace('\n', ' ');
            }
            answers.println("> " + answer);
            answers.flush();
        }
    }

    private static String obey(String[] words) {
        final String name = words[1];
        if (words[0].equals("open")) {
            open(name, words);
            return "";
        }
        KafkaShareConsumer member = (KafkaShareConsumer) MEMBERS.get(name);
        StringBuilder found = new StringBuilder();
        if (words[0].equals("poll")) {
            Iterator records = member.poll(Duration.ofMillis(Long.parseLong(words[2]))).iterator();
            while (records.hasNext()) {
                ConsumerRecord record = (ConsumerRecord) records.next();
                String at = record.partition() + ":" + record.offset();
                RECORDS.put(name + " " + at, record);
                found.append(at).append(':').append(record.deliveryCount().get()).append(' ');
            }
        } else if (words[0].equals("acknowledge")) {
            member.acknowledge((ConsumerRecord) RECORDS.get(name + " " + words[2]), AcknowledgeType.valueOf(words[3]));
        } else if (words[0].equals("commit")) {
            Iterator results = member.commitSync(Duration.ofSeconds(30)).entrySet().iterator();
            while (results.hasNext()) {
                Map.Entry entry = (Map.Entry) results.next();
                Optional problem = (Optional) entry.getValue();
                Errors error = problem.isPresent() ? Errors.forException((Throwable) problem.get()) : Errors.NONE;
                found.append(((TopicIdPartition) entry.getKey()).partition() + ":" + error.name() + " ");
            }
        } else if (words[0].equals("close")) {
            member.close(Duration.ofSeconds(30));
            MEMBERS.remove(name);
        } else if (words[0].equals("results")) {
            found.append(RESULTS.put(name, new StringBuilder()));
        } else {
            throw new IllegalArgumentException(words[0]);
        }
        return found.toString();
    }

    private static void open(final String name, String[] words) {
        Properties configs = new Properties();
        configs.put("bootstrap.servers", words[2]);
        configs.put("group.id", words[3]);
        configs.put("client.id", name);
        configs.put("max.poll.records", words[5]);
        configs.put("share.acknowledgement.mode", "explicit");
        configs.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        configs.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        KafkaShareConsumer member = new KafkaShareConsumer(configs);
        RESULTS.put(name, new StringBuilder());
        member.setAcknowledgementCommitCallback(new AcknowledgementCommitCallback() {
            public void onComplete(Map offsets, Exception problem) {
                String error = problem == null ? "NONE" : Errors.forException(problem).name();
                StringBuilder results = (StringBuilder) RESULTS.get(name);
                Iterator entries = offsets.entrySet().iterator();
                while (entries.hasNext()) {
                    Map.Entry entry = (Map.Entry) entries.next();
                    int partition = ((TopicIdPartition) entry.getKey()).partition();
                    Iterator acknowledged = ((Set) entry.getValue()).iterator();
                    while (acknowledged.hasNext()) {
                        results.append(partition + ":" + acknowledged.next() + ":" + error + " ");
                    }
                }
            }
        });
        member.subscribe(Collections.singleton(words[4]));
        MEMBERS.put(name, member);
    }
}

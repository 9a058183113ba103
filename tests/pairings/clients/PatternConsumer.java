import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collections;
import java.util.Iterator;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;

/**
 * Arguments: servers, group, expression, another topic. Prints the first record, the end of the other topic, which does
 * not match the expression, and after a line on standard input the next record.
 */
public class PatternConsumer {
    public static void main(String[] args) throws Exception {
        Properties conf = new Properties();
        conf.put("bootstrap.servers", args[0]);
        conf.put("group.id", args[1]);
        conf.put("group.protocol", "consumer");
        conf.put("auto.offset.reset", "earliest");
        conf.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        conf.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        KafkaConsumer consumer = new KafkaConsumer(conf);
        consumer.subscribe(new SubscriptionPattern(args[2]));
        System.out.println(next(consumer));
        TopicPartition other = new TopicPartition(args[3], 0);
        Map ends = consumer.endOffsets(Collections.singleton(other));
        System.out.println(ends.get(other));
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        System.out.println(next(consumer));
        consumer.close();
    }

    private static String next(KafkaConsumer consumer) {
        while (true) {
            Iterator records = consumer.poll(Duration.ofMillis(100L)).iterator();
            if (records.hasNext()) {
                return (String) ((ConsumerRecord) records.next()).value();
            }
        }
    }
}

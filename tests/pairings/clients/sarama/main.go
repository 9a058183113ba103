// Produces, consumes in a group, commits, and lists groups with Sarama. Arguments: an address, a topic, and the version
// of Kafka that Sarama shall assume ("" for its default).
// Prints the values, the committed offset, and whether the list has the group.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
)

const patience = time.Minute

func main() {
	log.SetFlags(0)
	address, topic := []string{os.Args[1]}, os.Args[2]
	config := configured(os.Args[3])
	admin, err := sarama.NewClusterAdmin(address, config)
	check(err)
	check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	produce(address, config, topic)
	group := "g-" + topic
	seen := consume(address, config, topic, group)
	offsets, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
	check(err)
	listed, err := admin.ListConsumerGroups()
	check(err)
	_, isListed := listed[group]
	result := map[string]any{"seen": seen, "committed": offsets.GetBlock(topic, 0).Offset, "listed": isListed}
	check(admin.Close())
	check(json.NewEncoder(os.Stdout).Encode(result))
}

func configured(version string) *sarama.Config {
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	if version != "" {
		parsed, err := sarama.ParseKafkaVersion(version)
		check(err)
		config.Version = parsed
	}
	return config
}

func produce(address []string, config *sarama.Config, topic string) {
	producer, err := sarama.NewSyncProducer(address, config)
	check(err)
	for _, value := range []string{"one", "two"} {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)})
		check(err)
	}
	check(producer.Close())
}

func consume(address []string, config *sarama.Config, topic, group string) []string {
	member, err := sarama.NewConsumerGroup(address, group, config)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	handler := &twoRecords{done: cancel}
	for len(handler.seen) < 2 { // a rebalance ends Consume
		check(member.Consume(ctx, []string{topic}, handler))
		if ctx.Err() == context.DeadlineExceeded {
			log.Panicf("after %v: %v", patience, handler.seen)
		}
	}
	check(member.Close())
	return handler.seen
}

// twoRecords keeps two records, commits them, and ends.
type twoRecords struct {
	seen []string
	done context.CancelFunc
}

func (*twoRecords) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*twoRecords) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (handler *twoRecords) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		handler.seen = append(handler.seen, string(message.Value))
		session.MarkMessage(message, "")
		if len(handler.seen) == 2 {
			session.Commit()
			handler.done()
			return nil
		}
	}
	return nil
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

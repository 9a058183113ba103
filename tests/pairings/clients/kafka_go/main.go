// Produces, consumes in a group, commits, and lists groups with kafka-go. Arguments: an address, a topic.
// Prints the values, the committed offset, and whether the list has the group.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
)

const patience = time.Minute

func main() {
	log.SetFlags(0)
	address, topic := os.Args[1], os.Args[2]
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := &kafka.Client{Addr: kafka.TCP(address), Timeout: patience}
	create(ctx, client, topic)
	produce(ctx, address, topic)
	group := "g-" + topic
	seen := consume(ctx, address, topic, group)
	found, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0}}})
	check(err)
	result := map[string]any{
		"seen":      seen,
		"committed": found.Topics[topic][0].CommittedOffset,
		"listed":    isListed(ctx, client, group),
	}
	check(json.NewEncoder(os.Stdout).Encode(result))
}

func create(ctx context.Context, client *kafka.Client, topic string) {
	wanted := kafka.TopicConfig{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}
	created, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{wanted}})
	check(err)
	check(created.Errors[topic])
}

func produce(ctx context.Context, address, topic string) {
	writer := &kafka.Writer{Addr: kafka.TCP(address), Topic: topic, RequiredAcks: kafka.RequireAll}
	check(writer.WriteMessages(ctx, kafka.Message{Value: []byte("one")}, kafka.Message{Value: []byte("two")}))
	check(writer.Close())
}

func consume(ctx context.Context, address, topic, group string) []string {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{address}, Topic: topic, GroupID: group, StartOffset: kafka.FirstOffset, MaxWait: time.Second,
	})
	var seen []string
	for len(seen) < 2 {
		message, err := reader.FetchMessage(ctx)
		check(err)
		seen = append(seen, string(message.Value))
		check(reader.CommitMessages(ctx, message))
	}
	check(reader.Close())
	return seen
}

func isListed(ctx context.Context, client *kafka.Client, group string) bool {
	listed, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	check(err)
	check(listed.Error)
	for _, one := range listed.Groups {
		if one.GroupID == group {
			return true
		}
	}
	return false
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// Produces, consumes in a group, commits, lists groups, and writes a transaction with kafkajs.
// Arguments: its folder, an address, a topic. Prints the values, the committed offset, whether the list has the group, and
// the end of the log.
const [folder, address, topic] = process.argv.slice(2);
const { Kafka, logLevel } = require(`${folder}/node_modules/kafkajs`);

const run = async () => {
  const kafka = new Kafka({ clientId: "js", brokers: [address], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: 1 }] });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages: [{ value: "one" }, { value: "two" }] });
  const groupId = `g-${topic}`;
  const consumer = kafka.consumer({ groupId });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const seen = [];
  await new Promise((done) =>
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ message }) => {
        seen.push(message.value.toString());
        if (seen.length === 2) done();
      },
    }),
  );
  await consumer.commitOffsets([{ topic, partition: 0, offset: "2" }]);
  const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] });
  const { groups } = await admin.listGroups();
  await consumer.disconnect();
  const writer = kafka.producer({ transactionalId: `t-${topic}`, idempotent: true, maxInFlightRequests: 1 });
  await writer.connect();
  const transaction = await writer.transaction();
  await transaction.send({ topic, messages: [{ value: "three" }] });
  const topics = [{ topic, partitions: [{ partition: 0, offset: "1" }] }];
  await transaction.sendOffsets({ consumerGroupId: groupId, topics });
  await transaction.commit();
  let end;
  while (end !== "4") [{ offset: end }] = await admin.fetchTopicOffsets(topic); // until its marker is written
  await Promise.all([writer, producer, admin].map((client) => client.disconnect()));
  const listed = groups.some((group) => group.groupId === groupId);
  console.log(JSON.stringify({ seen, committed: Number(committed.partitions[0].offset), listed, end }));
};
run().catch((error) => {
  console.error(error);
  process.exit(1);
});

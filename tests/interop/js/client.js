// A Kafka client made of kafkajs, driven by one JSON command per line on stdin; the same language
// as go/main.go speaks: {"do": name, ...} in, {"ok": ...} or {"error": text} out.
'use strict'
const readline = require('readline')
const { Kafka, CompressionTypes, CompressionCodecs, PartitionAssigners, logLevel } = require('kafkajs')
const Snappy = require('kafkajs-snappy')

CompressionCodecs[CompressionTypes.Snappy] = Snappy
const kafka = new Kafka({
  clientId: 'kafkajs',
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 5 },
})
const CODECS = { gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }
const members = {}

const bytes = text => (text === null || text === undefined ? null : Buffer.from(text, 'base64'))
const text = data => (data === null || data === undefined ? null : data.toString('base64'))

function convert(partition, message) {
  const headers = []
  for (const [key, value] of Object.entries(message.headers || {})) {
    for (const one of Array.isArray(value) ? value : [value]) headers.push({ key, value: text(one) })
  }
  return {
    partition,
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    key: text(message.key),
    value: text(message.value),
    headers,
  }
}

function toMessage(record) {
  const headers = {}
  for (const { key, value } of record.headers || []) {
    headers[key] = key in headers ? [].concat(headers[key], bytes(value)) : bytes(value)
  }
  const message = { partition: record.partition, key: bytes(record.key), value: bytes(record.value), headers }
  if (record.timestamp) message.timestamp = String(record.timestamp)
  return message
}

async function withAdmin(action) {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await action(admin)
  } finally {
    await admin.disconnect()
  }
}

const commands = {
  async produce({ topic, records, codec, acks, transaction }) {
    const producer = kafka.producer({
      allowAutoTopicCreation: false,
      idempotent: acks === undefined,
      maxInFlightRequests: 1,
      ...(transaction ? { transactionalId: transaction } : {}),
    })
    await producer.connect()
    try {
      const sender = transaction ? await producer.transaction() : producer
      const answers = await sender.send({
        topic,
        messages: records.map(toMessage),
        acks: acks === undefined ? -1 : Number(acks),
        compression: CODECS[codec] || CompressionTypes.None,
      })
      return answers.map(answer => Number(answer.baseOffset))
    } finally {
      await producer.disconnect()
    }
  },

  async consume({ topic, count, millis }) {
    const group = `consume-${topic}-${Math.random()}`
    const consumer = kafka.consumer({ groupId: group, heartbeatInterval: 300, maxWaitTimeInMs: 100 })
    const found = []
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    try {
      await new Promise((resolve, reject) => {
        consumer.on(consumer.events.CRASH, event => reject(event.payload.error))
        consumer
          .run({
            eachMessage: async ({ partition, message }) => {
              if (millis && Number(message.timestamp) < millis) return
              found.push(convert(partition, message))
              if (found.length >= count) resolve()
            },
          })
          .catch(reject)
      })
    } finally {
      await consumer.disconnect()
    }
    return found.sort((a, b) => a.partition - b.partition || a.offset - b.offset)
  },

  async join({ member, group, topic }) {
    const state = { partitions: [], records: [], offsets: {} }
    const consumer = kafka.consumer({
      groupId: group,
      heartbeatInterval: 200,
      sessionTimeout: 10000,
      maxWaitTimeInMs: 100,
      partitionAssigners: [PartitionAssigners.roundRobin],
    })
    consumer.on(consumer.events.GROUP_JOIN, event => {
      state.partitions = (event.payload.memberAssignment[topic] || []).slice().sort((a, b) => a - b)
    })
    state.consumer = consumer
    state.topic = topic
    members[member] = state
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        state.records.push(convert(partition, message))
        state.offsets[partition] = String(Number(message.offset) + 1)
      },
    })
    return 'joined'
  },

  async look({ member }) {
    const state = members[member]
    return { partitions: state.partitions, records: state.records.splice(0) }
  },

  async commit({ member }) {
    const { consumer, topic, offsets } = members[member]
    const owned = members[member].partitions.filter(partition => partition in offsets)
    await consumer.commitOffsets(
      owned.map(partition => ({ topic, partition, offset: offsets[partition] }))
    )
    return 'committed'
  },

  async leave({ member }) {
    await members[member].consumer.disconnect()
    delete members[member]
    return 'left'
  },

  create: ({ topic, partitions, configs }) =>
    withAdmin(async admin => {
      const configEntries = Object.entries(configs || {}).map(([name, value]) => ({ name, value }))
      const made = await admin.createTopics({
        topics: [{ topic, numPartitions: partitions, replicationFactor: 1, configEntries }],
      })
      if (!made) throw new Error('TOPIC_ALREADY_EXISTS')
      return { partitions }
    }),

  grow: ({ topic, partitions }) =>
    withAdmin(async admin => {
      await admin.createPartitions({ topicPartitions: [{ topic, count: partitions }] })
      return 'grown'
    }),

  alter: ({ topic, configs }) =>
    withAdmin(async admin => {
      const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
      await admin.alterConfigs({ resources: [{ type: 2, name: topic, configEntries }] })
      return 'altered'
    }),

  describe: ({ topic }) =>
    withAdmin(async admin => {
      const metadata = await admin.fetchTopicMetadata({ topics: [topic] })
      const described = await admin.describeConfigs({ resources: [{ type: 2, name: topic }] })
      const offsets = await admin.fetchTopicOffsets(topic)
      const configs = {}
      for (const entry of described.resources[0].configEntries) {
        configs[entry.configName] = entry.configValue
      }
      const ends = {}
      for (const { partition, offset } of offsets) ends[partition] = Number(offset)
      return { partitions: metadata.topics[0].partitions.length, configs, ends }
    }),

  trim: ({ topic, count }) =>
    withAdmin(async admin => {
      await admin.fetchTopicOffsets(topic) // without it kafkajs does not know the leader
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(count) }] })
      const offsets = await admin.fetchTopicOffsets(topic)
      return Number(offsets.find(one => one.partition === 0).low)
    }),

  delete: ({ topic }) =>
    withAdmin(async admin => {
      await admin.deleteTopics({ topics: [topic] })
      return 'deleted'
    }),

  group: ({ group }) =>
    withAdmin(async admin => {
      const described = (await admin.describeGroups([group])).groups[0]
      const offsets = {}
      for (const { topic, partitions } of await admin.fetchOffsets({ groupId: group })) {
        for (const { partition, offset } of partitions) offsets[`${topic}-${partition}`] = Number(offset)
      }
      return { state: described.state, members: described.members.length, offsets }
    }),

  forget: ({ group }) =>
    withAdmin(async admin => {
      await admin.deleteGroups([group])
      return 'forgotten'
    }),
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line)
    try {
      const ok = await commands[command.do](command)
      process.stdout.write(JSON.stringify({ ok }) + '\n')
    } catch (error) {
      process.stdout.write(JSON.stringify({ error: String(error), code: error.code || 0 }) + '\n')
    }
  }
  process.exit(0)
}

main()

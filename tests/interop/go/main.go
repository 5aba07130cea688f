// A Kafka client made of franz-go, driven by one JSON command per line on stdin.
//
// Each line is {"do": name, ...}; each answer is one JSON line: {"ok": ...} or {"error": text}.
// Keys, values and headers travel in base64, so that every byte can be compared.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type header struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

type record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
}

type command struct {
	Do          string            `json:"do"`
	Topic       string            `json:"topic"`
	Partitions  int32             `json:"partitions"`
	Group       string            `json:"group"`
	Codec       string            `json:"codec"`
	Acks        string            `json:"acks"`
	Count       int               `json:"count"`
	Millis      int64             `json:"millis"`
	Member      string            `json:"member"`
	Assignor    string            `json:"assignor"`
	Instance    string            `json:"instance"`
	Transaction string            `json:"transaction"`
	Configs     map[string]string `json:"configs"`
	Records     []record          `json:"records"`
}

type client struct {
	seeds   string
	members map[string]*member
}

func (c *client) open(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(c.seeds))...)
}

func codec(name string) kgo.CompressionCodec {
	switch name {
	case "gzip":
		return kgo.GzipCompression()
	case "snappy":
		return kgo.SnappyCompression()
	case "lz4":
		return kgo.Lz4Compression()
	case "zstd":
		return kgo.ZstdCompression()
	}
	return kgo.NoCompression()
}

func produceOptions(cmd command) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ProducerBatchCompression(codec(cmd.Codec)),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(4_000_000),
	}
	switch cmd.Acks {
	case "0":
		options = append(options, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	case "1":
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	}
	if cmd.Transaction != "" {
		options = append(options, kgo.TransactionalID(cmd.Transaction))
	}
	return options
}

func (c *client) produce(ctx context.Context, cmd command) (any, error) {
	cl, err := c.open(produceOptions(cmd)...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if cmd.Transaction != "" {
		if err := cl.BeginTransaction(); err != nil {
			return nil, err
		}
	}
	var records []*kgo.Record
	for _, r := range cmd.Records {
		out := &kgo.Record{Topic: cmd.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value}
		if r.Timestamp > 0 {
			out.Timestamp = time.UnixMilli(r.Timestamp)
		}
		for _, h := range r.Headers {
			out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		records = append(records, out)
	}
	var offsets []int64
	for _, result := range cl.ProduceSync(ctx, records...) {
		if result.Err != nil {
			return nil, result.Err
		}
		offsets = append(offsets, result.Record.Offset)
	}
	return offsets, nil
}

func convert(r *kgo.Record) record {
	headers := []header{}
	for _, h := range r.Headers {
		headers = append(headers, header{h.Key, h.Value})
	}
	return record{r.Partition, r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value, headers}
}

// poll takes records until there are enough, in the order of partitions and offsets.
func poll(ctx context.Context, cl *kgo.Client, count int) ([]record, error) {
	found := []record{}
	for len(found) < count {
		fetches := cl.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			return nil, failed.Err
		}
		fetches.EachRecord(func(r *kgo.Record) { found = append(found, convert(r)) })
	}
	sort.Slice(found, func(i, j int) bool {
		if found[i].Partition != found[j].Partition {
			return found[i].Partition < found[j].Partition
		}
		return found[i].Offset < found[j].Offset
	})
	return found, nil
}

func (c *client) consume(ctx context.Context, cmd command) (any, error) {
	start := kgo.NewOffset().AtStart()
	if cmd.Millis > 0 {
		start = kgo.NewOffset().AfterMilli(cmd.Millis)
	}
	cl, err := c.open(kgo.ConsumeTopics(cmd.Topic), kgo.ConsumeResetOffset(start))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	return poll(ctx, cl, cmd.Count)
}

// member consumes in the background, as an application would.
type member struct {
	cl       *kgo.Client
	mu       sync.Mutex
	assigned map[int32]bool
	found    []record
	err      error
}

func (m *member) change(to bool) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, partitions := range topics {
			for _, partition := range partitions {
				if to {
					m.assigned[partition] = true
				} else {
					delete(m.assigned, partition)
				}
			}
		}
	}
}

func (m *member) run() {
	for {
		fetches := m.cl.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		m.mu.Lock()
		for _, failed := range fetches.Errors() {
			m.err = failed.Err
		}
		fetches.EachRecord(func(r *kgo.Record) { m.found = append(m.found, convert(r)) })
		m.mu.Unlock()
	}
}

func (c *client) join(_ context.Context, cmd command) (any, error) {
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	m := &member{assigned: map[int32]bool{}}
	options := []kgo.Opt{
		kgo.ConsumerGroup(cmd.Group), kgo.ConsumeTopics(cmd.Topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.HeartbeatInterval(200 * time.Millisecond), kgo.SessionTimeout(6 * time.Second), kgo.Balancers(balancers[cmd.Assignor]),
		kgo.OnPartitionsAssigned(m.change(true)), kgo.OnPartitionsRevoked(m.change(false)),
		kgo.OnPartitionsLost(m.change(false)),
	}
	if cmd.Instance != "" {
		options = append(options, kgo.InstanceID(cmd.Instance))
	}
	cl, err := c.open(options...)
	if err != nil {
		return nil, err
	}
	m.cl = cl
	c.members[cmd.Member] = m
	go m.run()
	return "joined", nil
}

// look tells what a member owns and has seen since the last look.
func (c *client) look(_ context.Context, cmd command) (any, error) {
	m := c.members[cmd.Member]
	m.mu.Lock()
	defer m.mu.Unlock()
	partitions := []int32{}
	for partition := range m.assigned {
		partitions = append(partitions, partition)
	}
	sort.Slice(partitions, func(i, j int) bool { return partitions[i] < partitions[j] })
	found := append([]record{}, m.found...)
	m.found = nil
	return map[string]any{"partitions": partitions, "records": found}, m.err
}

func (c *client) commit(ctx context.Context, cmd command) (any, error) {
	return "committed", c.members[cmd.Member].cl.CommitUncommittedOffsets(ctx)
}

func (c *client) leave(_ context.Context, cmd command) (any, error) {
	c.members[cmd.Member].cl.Close()
	delete(c.members, cmd.Member)
	return "left", nil
}

func (c *client) create(ctx context.Context, adm *kadm.Client, cmd command) (any, error) {
	configs := map[string]*string{}
	for key, value := range cmd.Configs {
		configs[key] = kadm.StringPtr(value)
	}
	answer, err := adm.CreateTopic(ctx, cmd.Partitions, 1, configs, cmd.Topic)
	if err != nil {
		return nil, err
	}
	return map[string]any{"partitions": answer.NumPartitions}, answer.Err
}

func (c *client) describe(ctx context.Context, adm *kadm.Client, cmd command) (any, error) {
	topics, err := adm.ListTopics(ctx, cmd.Topic)
	if err != nil {
		return nil, err
	}
	configs, err := adm.DescribeTopicConfigs(ctx, cmd.Topic)
	if err != nil {
		return nil, err
	}
	ends, err := adm.ListEndOffsets(ctx, cmd.Topic)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"partitions": len(topics[cmd.Topic].Partitions)}
	settings := map[string]string{}
	for _, c := range configs[0].Configs {
		settings[c.Key] = c.MaybeValue()
	}
	offsets := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) { offsets[o.Partition] = o.Offset })
	answer["configs"], answer["ends"] = settings, offsets
	return answer, topics[cmd.Topic].Err
}

func (c *client) group(ctx context.Context, adm *kadm.Client, cmd command) (any, error) {
	groups, err := adm.DescribeGroups(ctx, cmd.Group)
	if err != nil {
		return nil, err
	}
	commits, err := adm.FetchOffsets(ctx, cmd.Group)
	if err != nil {
		return nil, err
	}
	lags, err := adm.Lag(ctx, cmd.Group)
	if err != nil {
		return nil, err
	}
	offsets := map[string]int64{}
	commits.Each(func(o kadm.OffsetResponse) {
		offsets[fmt.Sprintf("%s-%d", o.Topic, o.Partition)] = o.At
	})
	d := groups[cmd.Group]
	return map[string]any{
		"state": d.State, "protocol": d.Protocol, "members": len(d.Members),
		"offsets": offsets, "lag": lags[cmd.Group].Lag.Total(),
	}, d.Err
}

func (c *client) admin(ctx context.Context, cmd command) (any, error) {
	cl, err := c.open()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	switch cmd.Do {
	case "create":
		return c.create(ctx, adm, cmd)
	case "describe":
		return c.describe(ctx, adm, cmd)
	case "group":
		return c.group(ctx, adm, cmd)
	case "grow":
		answer, err := adm.UpdatePartitions(ctx, int(cmd.Partitions), cmd.Topic)
		if err != nil {
			return nil, err
		}
		return "grown", answer.Error()
	case "alter":
		var changes []kadm.AlterConfig
		for key, value := range cmd.Configs {
			changes = append(changes, kadm.AlterConfig{Name: key, Value: kadm.StringPtr(value)})
		}
		answers, err := adm.AlterTopicConfigs(ctx, changes, cmd.Topic)
		if err != nil {
			return nil, err
		}
		return "altered", answers[0].Err
	case "trim":
		offsets := kadm.Offsets{}
		offsets.AddOffset(cmd.Topic, 0, int64(cmd.Count), -1)
		answers, err := adm.DeleteRecords(ctx, offsets)
		if err != nil {
			return nil, err
		}
		return answers[cmd.Topic][0].LowWatermark, answers.Error()
	case "delete":
		answer, err := adm.DeleteTopic(ctx, cmd.Topic)
		if err != nil {
			return nil, err
		}
		return "deleted", answer.Err
	case "forget":
		answer, err := adm.DeleteGroup(ctx, cmd.Group)
		if err != nil {
			return nil, err
		}
		return "forgotten", answer.Err
	case "versions":
		answers, err := adm.ApiVersions(ctx)
		if err != nil {
			return nil, err
		}
		var guess string
		answers.Each(func(v kadm.BrokerApiVersions) { guess = v.VersionGuess() })
		return guess, nil
	}
	return nil, fmt.Errorf("no command %q", cmd.Do)
}

func (c *client) run(cmd command) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	switch cmd.Do {
	case "produce":
		return c.produce(ctx, cmd)
	case "consume":
		return c.consume(ctx, cmd)
	case "join":
		return c.join(ctx, cmd)
	case "look":
		return c.look(ctx, cmd)
	case "commit":
		return c.commit(ctx, cmd)
	case "leave":
		return c.leave(ctx, cmd)
	}
	return c.admin(ctx, cmd)
}

func main() {
	c := &client{seeds: os.Args[1], members: map[string]*member{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var cmd command
		if err := json.Unmarshal(lines.Bytes(), &cmd); err != nil {
			panic(err)
		}
		answer, err := c.run(cmd)
		if err != nil {
			failure := map[string]any{"error": err.Error(), "code": 0}
			var known *kerr.Error
			if errors.As(err, &known) {
				failure["code"] = known.Code
			}
			answers.Encode(failure)
			continue
		}
		answers.Encode(map[string]any{"ok": answer})
	}
}

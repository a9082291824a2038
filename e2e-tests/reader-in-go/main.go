// Reads a topic from its first record to its present end, by the contract files alone, and prints
// how many records there are of each type. A record that is not what the contracts promise ends it.
// Such as: go run . -brokers 127.0.0.1:19092 -topic orders.v1 -contract ../../contracts/asyncapi.json
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 60 * time.Second

func main() {
	brokers := flag.String("brokers", "127.0.0.1:19092", "host:port,host:port")
	topic := flag.String("topic", "orders.v1", "what to read")
	contract := flag.String("contract", "asyncapi.json", "the AsyncAPI document")
	key := flag.String("key", "", "only the records with this key")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	counts, err := read(ctx, strings.Split(*brokers, ","), *topic, *contract, *key)
	if err != nil {
		log.Fatal(err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(counts)
}

// read gives the number of records by type and version, such as order-placed.v1.
func read(ctx context.Context, brokers []string, topic, contract, key string) (map[string]int, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	left := map[int32]int64{} // partition: its end, until that is reached
	ends.Each(func(end kadm.ListedOffset) {
		if end.Offset > 0 {
			left[end.Partition] = end.Offset
		}
	})
	compiler, counts := jsonschema.NewCompiler(), map[string]int{}
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, record := range fetches.Records() {
			if key == "" || key == string(record.Key) {
				name, err := check(compiler, contract, record)
				if err != nil {
					return nil, fmt.Errorf("%d@%d: %w", record.Partition, record.Offset, err)
				}
				counts[name]++
			}
			if record.Offset+1 >= left[record.Partition] {
				delete(left, record.Partition)
			}
		}
	}
	return counts, nil
}

// check gives the type of a record that is as its message in the contract says.
func check(compiler *jsonschema.Compiler, contract string, record *kgo.Record) (string, error) {
	headers := map[string]any{}
	for _, header := range record.Headers {
		headers[header.Key] = string(header.Value)
	}
	name := fmt.Sprintf("%v.v%v", headers["ce_type"], headers["ce_schemaversion"])
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(record.Value))
	if err != nil {
		return name, err
	}
	for part, value := range map[string]any{"headers": headers, "payload": body} {
		schema, err := compiler.Compile(contract + "#/components/messages/" + name + "/" + part)
		if err != nil {
			return name, err
		}
		if err := schema.Validate(value); err != nil {
			return name, err
		}
	}
	return name, nil
}

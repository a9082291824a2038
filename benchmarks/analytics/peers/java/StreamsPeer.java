import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The question of the analytics job, answered as Kafka Streams does: the lines of confirmed orders
 * are joined with a table of users, go through a topic to be keyed by item, and are joined with a
 * table of items; what is local is counted per hour, type and address, exactly_once_v2.
 *
 * <p>A table holds what is known when an order is read, so the answer is near, not exact, and what
 * becomes known later corrects nothing: in a backlog, items are known long before their orders are
 * read. With -Dversioned=true, tables hold what was valid at each time. There are no cancellations.
 *
 * <p>Arguments: bootstrap servers, threads, lines to wait for, output topic, state folder. Prints
 * how far it has come, a line of JSON each time, and ends when all lines were joined and committed.
 */
public final class StreamsPeer {
  private static final int PARTITIONS = 4;
  private static final int POLL_RECORDS_MAX = 5_000;
  private static final int BATCH_BYTES_MAX = 256 * 1024;
  private static final int LINGER_MILLISECONDS = 20;
  private static final long CACHE_BYTES_MAX = 64L << 20;
  private static final Duration WINDOW = Duration.ofHours(1);
  private static final boolean VERSIONED = Boolean.getBoolean("versioned");

  /** Every version: users and items are a year older than the first order. */
  private static final Duration HISTORY = Duration.ofDays(1_000);

  /** Two hours as in the job; or long enough for partitions of a backlog that are read unevenly. */
  private static final Duration GRACE = VERSIONED ? Duration.ofDays(2) : Duration.ofHours(2);

  private static final Duration CLOSE_WAIT_MAX = Duration.ofSeconds(60);

  /** How long nothing may happen before it gives up. */
  private static final long STILL_MILLISECONDS_MAX = 30_000;

  record Line(String user, String item, long quantity, long cents, long orderedAt) {}

  record Order(List<Line> lines, long orderedAt) {}

  record User(String address, long since) {}

  record Item(String origin, String type, long since) {}

  record OfUser(Line line, String address) {}

  record Purchase(Line line, String address, String origin, String type) {}

  /** What one hour, type and address come to; distinct users can only be counted by their names. */
  static final class Cell {
    final TreeSet<String> users = new TreeSet<>();
    long purchases;
    long quantity;
    long cents;

    Cell add(Line line) {
      users.add(line.user);
      purchases += 1;
      quantity += line.quantity;
      cents += line.quantity * line.cents;
      return this;
    }

    String json() {
      return "{\"users\":%d,\"purchases\":%d,\"quantity\":%d,\"cents\":%d}"
          .formatted(users.size(), purchases, quantity, cents);
    }
  }

  static final Serde<Order> ORDERS_TOPIC = json(StreamsPeer::order);
  static final Serde<User> USERS_TOPIC =
      json(at -> new User(text(at, "address"), instant(at, "effective_at")));
  static final Serde<Item> ITEMS_TOPIC =
      json(at -> new Item(text(at, "origin"), text(at, "type"), instant(at, "effective_at")));

  static final Serde<Line> LINE = binary(StreamsPeer::write, StreamsPeer::readLine);
  static final Serde<User> USER =
      binary(
          (out, user) -> {
            out.writeUTF(user.address);
            out.writeLong(user.since);
          },
          in -> new User(in.readUTF(), in.readLong()));
  static final Serde<Item> ITEM =
      binary(
          (out, item) -> {
            out.writeUTF(item.origin);
            out.writeUTF(item.type);
            out.writeLong(item.since);
          },
          in -> new Item(in.readUTF(), in.readUTF(), in.readLong()));
  static final Serde<OfUser> OF_USER =
      binary(
          (out, each) -> {
            write(out, each.line);
            out.writeUTF(each.address);
          },
          in -> new OfUser(readLine(in), in.readUTF()));
  static final Serde<Purchase> PURCHASE =
      binary(
          (out, each) -> {
            write(out, each.line);
            out.writeUTF(each.address);
            out.writeUTF(each.origin);
            out.writeUTF(each.type);
          },
          in -> new Purchase(readLine(in), in.readUTF(), in.readUTF(), in.readUTF()));
  static final Serde<Cell> CELL =
      binary(
          (out, cell) -> {
            out.writeLong(cell.purchases);
            out.writeLong(cell.quantity);
            out.writeLong(cell.cents);
            out.writeInt(cell.users.size());
            for (String user : cell.users) {
              out.writeUTF(user);
            }
          },
          in -> {
            Cell cell = new Cell();
            cell.purchases = in.readLong();
            cell.quantity = in.readLong();
            cell.cents = in.readLong();
            for (int left = in.readInt(); left > 0; left--) {
              cell.users.add(in.readUTF());
            }
            return cell;
          });

  public static void main(String[] arguments) throws InterruptedException {
    String servers = arguments[0];
    int threads = Integer.parseInt(arguments[1]);
    long expected = Long.parseLong(arguments[2]);
    String output = arguments[3];
    String stateFolder = arguments[4];

    Properties settings = settings(servers, threads, stateFolder);
    KafkaStreams streams = new KafkaStreams(topology(settings, output), settings);
    streams.setUncaughtExceptionHandler(
        error -> {
          error.printStackTrace();
          return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
    streams.start();
    long before = -1;
    long movedAt = System.currentTimeMillis();
    while (Progress.joined() < expected) {
      Thread.sleep(Progress.EVERY_MILLISECONDS);
      if (Progress.joined() != before) {
        before = Progress.joined();
        movedAt = System.currentTimeMillis();
        Progress.print();
      } else if (System.currentTimeMillis() - movedAt > STILL_MILLISECONDS_MAX) {
        System.err.println("only " + before + " of " + expected + " lines were joined");
        System.exit(1);
      }
    }
    boolean committed = streams.close(CLOSE_WAIT_MAX);
    Progress.print();
    System.exit(committed ? 0 : 1);
  }

  static Properties settings(String servers, int threads, String stateFolder) {
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "peer-" + System.currentTimeMillis());
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, threads);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, stateFolder);
    settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, CACHE_BYTES_MAX);
    settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
    settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
    settings.put(
        StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), POLL_RECORDS_MAX);
    settings.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), BATCH_BYTES_MAX);
    settings.put(StreamsConfig.producerPrefix(ProducerConfig.LINGER_MS_CONFIG), LINGER_MILLISECONDS);
    return settings;
  }

  static Topology topology(Properties settings, String output) {
    StreamsBuilder builder = new StreamsBuilder();
    KTable<String, User> users = table(builder, "users", USERS_TOPIC, USER, User::since);
    KTable<String, Item> items = table(builder, "items", ITEMS_TOPIC, ITEM, Item::since);
    KStream<String, Line> lines =
        builder.stream("orders.v1", consumed(ORDERS_TOPIC, Order::orderedAt))
            .flatMapValues(Order::lines);
    lines
        .join(
            users,
            (line, user) -> new OfUser(line, user.address),
            Joined.with(Serdes.String(), LINE, USER))
        .selectKey((user, each) -> each.line.item)
        .repartition(
            Repartitioned.<String, OfUser>as("by-item")
                .withKeySerde(Serdes.String())
                .withValueSerde(OF_USER)
                .withNumberOfPartitions(PARTITIONS))
        .join(
            items,
            (each, item) -> new Purchase(each.line, each.address, item.origin, item.type),
            Joined.with(Serdes.String(), OF_USER, ITEM))
        .peek((item, purchase) -> Progress.addOne())
        .filter((item, purchase) -> purchase.address.equals(purchase.origin))
        .groupBy(
            (item, purchase) -> purchase.type + "|" + purchase.address,
            Grouped.<String, Purchase>as("by-cell")
                .withKeySerde(Serdes.String())
                .withValueSerde(PURCHASE))
        .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
        .aggregate(
            Cell::new,
            (key, purchase, cell) -> cell.add(purchase.line),
            Materialized.<String, Cell, WindowStore<Bytes, byte[]>>as("cells")
                .withKeySerde(Serdes.String())
                .withValueSerde(CELL))
        .toStream()
        .map((key, cell) -> KeyValue.pair(json(key), cell.json()))
        .to(output, Produced.with(Serdes.String(), Serdes.String()));
    return builder.build(settings);
  }

  /** With versions, a join finds what was valid at the time of its order, if it is known by then. */
  static <T> KTable<String, T> table(
      StreamsBuilder builder, String name, Serde<T> read, Serde<T> kept, Function<T, Long> time) {
    Materialized<String, T, KeyValueStore<Bytes, byte[]>> store =
        VERSIONED
            ? Materialized.as(Stores.persistentVersionedKeyValueStore(name, HISTORY))
            : Materialized.as(name);
    return builder.stream(name + ".v1", consumed(read, time))
        .toTable(store.withKeySerde(Serdes.String()).withValueSerde(kept));
  }

  /** A topic in which each record happened at the time that is in its value. */
  static <T> Consumed<String, T> consumed(Serde<T> values, Function<T, Long> time) {
    @SuppressWarnings("unchecked")
    TimestampExtractor inValue = (record, before) -> time.apply((T) record.value());
    return Consumed.with(Serdes.String(), values).withTimestampExtractor(inValue);
  }

  /** The key of a cell. */
  static String json(Windowed<String> key) {
    String[] parts = key.key().split("\\|");
    return "{\"hour\":%d,\"type\":\"%s\",\"place\":\"%s\"}"
        .formatted(key.window().startTime().getEpochSecond(), parts[0], parts[1]);
  }

  static Order order(JsonNode document) {
    long orderedAt = instant(document, "ordered_at");
    String user = text(document, "user_id");
    List<Line> lines = new ArrayList<>();
    for (JsonNode each : document.get("lines")) {
      long cents = new BigDecimal(text(each, "unit_price")).movePointRight(2).longValueExact();
      long quantity = each.get("quantity").asLong();
      lines.add(new Line(user, text(each, "item_id"), quantity, cents, orderedAt));
    }
    return new Order(lines, orderedAt);
  }

  static String text(JsonNode document, String field) {
    return document.get(field).asText();
  }

  static long instant(JsonNode document, String field) {
    return Instant.parse(text(document, field)).toEpochMilli();
  }

  static void write(DataOutputStream out, Line line) throws IOException {
    out.writeUTF(line.user);
    out.writeUTF(line.item);
    out.writeLong(line.quantity);
    out.writeLong(line.cents);
    out.writeLong(line.orderedAt);
  }

  static Line readLine(DataInputStream in) throws IOException {
    return new Line(in.readUTF(), in.readUTF(), in.readLong(), in.readLong(), in.readLong());
  }

  interface Write<T> {
    void to(DataOutputStream out, T value) throws IOException;
  }

  interface Read<T> {
    T from(DataInputStream in) throws IOException;
  }

  /** Between the steps values travel in as few bytes as they need. */
  static <T> Serde<T> binary(Write<T> write, Read<T> read) {
    return Serdes.serdeFrom(
        (topic, value) -> {
          if (value == null) {
            return null;
          }
          ByteArrayOutputStream bytes = new ByteArrayOutputStream(128);
          try {
            write.to(new DataOutputStream(bytes), value);
          } catch (IOException error) {
            throw new UncheckedIOException(error);
          }
          return bytes.toByteArray();
        },
        (topic, bytes) -> {
          if (bytes == null) {
            return null;
          }
          try {
            return read.from(new DataInputStream(new ByteArrayInputStream(bytes)));
          } catch (IOException error) {
            throw new UncheckedIOException(error);
          }
        });
  }

  /** What others publish is only read. */
  static <T> Serde<T> json(Function<JsonNode, T> form) {
    ObjectReader reader = new ObjectMapper().reader();
    return Serdes.serdeFrom(
        (topic, value) -> {
          throw new UnsupportedOperationException("these topics are only read");
        },
        (topic, bytes) -> {
          if (bytes == null) {
            return null;
          }
          try {
            return form.apply(reader.readTree(bytes));
          } catch (IOException error) {
            throw new UncheckedIOException(error);
          }
        });
  }
}

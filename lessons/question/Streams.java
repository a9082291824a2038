import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.state.Stores;

/**
 * The question in Kafka Streams: joins with versioned tables, whose value is that of the time of the
 * order. Each order is answered at once: a fact that comes later changes nothing.
 */
final class Streams {
  private static final Duration HISTORY = Duration.ofDays(3650);
  private static final Serde<String> TEXT = Serdes.String();
  private static final Serde<Line> LINE = Json.of(Line.class);

  /** A version of a user or of an item. */
  record Fact(String address, String origin, String effectiveAt) {
    Instant since() {
      return Instant.parse(effectiveAt);
    }
  }

  record Order(String orderId, String userId, List<OrderLine> lines, String orderedAt) {
    Instant time() {
      return Instant.parse(orderedAt);
    }
  }

  record OrderLine(String itemId, int quantity, BigDecimal unitPrice) {}

  /** A line of an order with the address of its user. */
  record Line(String id, String hour, String user, String address, int quantity, long cents) {}

  /** The lines that were counted, so that one that comes twice counts once, and their sums. */
  record Hour(Set<String> lines, Set<String> buyers, int quantity, long cents) {
    Hour add(Line line) {
      if (!lines.add(line.id)) {
        return this;
      }
      buyers.add(line.user);
      return new Hour(lines, buyers, quantity + line.quantity, cents + line.cents);
    }
  }

  /** For every hour, the users that bought an item from where they lived when they ordered it. */
  static KStream<String, Row> countLocalBuyers(Topics topics) {
    return count(topics, versions(topics, "users"));
  }

  /** Wrong: a user lives where they lived first, whatever became of them. */
  static KStream<String, Row> countByFirstAddress(Topics topics) {
    KTable<String, String> first =
        topics
            .stream("users")
            .groupByKey()
            .reduce((one, other) -> fact(other).since().isBefore(fact(one).since()) ? other : one);
    return count(topics, first);
  }

  private static KStream<String, Row> count(Topics topics, KTable<String, String> users) {
    return topics
        .builder()
        .stream(topics.prefix() + "orders", timedBy(text -> order(text).time()))
        .join(users, (order, user) -> toLines(order(order), fact(user).address))
        .flatMap((user, lines) -> lines)
        .repartition(Repartitioned.with(TEXT, LINE))
        .join(
            versions(topics, "items"),
            (line, item) -> line.address.equals(fact(item).origin) ? line : null)
        .filter((item, line) -> line != null)
        .groupBy((item, line) -> line.hour, Grouped.with(TEXT, LINE))
        .aggregate(
            () -> new Hour(new HashSet<>(), new HashSet<>(), 0, 0),
            (hour, line, counted) -> counted.add(line),
            Materialized.with(TEXT, Json.of(Hour.class)))
        .toStream()
        .mapValues(
            (hour, counted) ->
                Row.of(
                    "hour", hour,
                    "local_buyers", counted.buyers.size(),
                    "purchases", counted.lines.size(),
                    "quantity", counted.quantity,
                    "cents", counted.cents));
  }

  /** Makes a table of the versions of each key in the last ten years. */
  private static KTable<String, String> versions(Topics topics, String name) {
    return topics
        .builder()
        .table(
            topics.prefix() + name,
            timedBy(text -> fact(text).since()),
            Materialized.as(Stores.persistentVersionedKeyValueStore(name, HISTORY)));
  }

  /** Reads texts whose time is in their value. */
  private static Consumed<String, String> timedBy(Function<String, Instant> time) {
    return Consumed.with(TEXT, TEXT)
        .withTimestampExtractor(
            (record, before) -> time.apply((String) record.value()).toEpochMilli());
  }

  private static Order order(String text) {
    return Json.read(text, Order.class);
  }

  private static Fact fact(String text) {
    return Json.read(text, Fact.class);
  }

  private static List<KeyValue<String, Line>> toLines(Order order, String address) {
    String hour = order.time().truncatedTo(ChronoUnit.HOURS).toString();
    List<KeyValue<String, Line>> lines = new ArrayList<>();
    for (OrderLine each : order.lines) {
      String id = order.orderId + " " + lines.size();
      long cents = each.unitPrice.movePointRight(2).longValueExact() * each.quantity;
      lines.add(
          KeyValue.pair(
              each.itemId, new Line(id, hour, order.userId, address, each.quantity, cents)));
    }
    return lines;
  }
}

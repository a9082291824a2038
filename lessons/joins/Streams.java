import java.time.Duration;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;

/** Joins in Kafka Streams: streams with streams within a time, and with tables as they are now. */
final class Streams {
  private static final Duration GRACE = Duration.ofSeconds(1);

  record Profile(String name, String zip) {}

  record Order(String order, String user) {}

  /**
   * Each view with the search within a second of it, and with the profile of its user. A view
   * without a search comes when any newer record says that no search can match it any more.
   */
  static KStream<String, Row> enrichClicks(Topics topics) {
    return enrichWithin(Duration.ofSeconds(1), topics);
  }

  /** Wrong: every search of the user matches, and the stores hold two days. */
  static KStream<String, Row> enrichAtAnyTime(Topics topics) {
    return enrichWithin(Duration.ofDays(1), topics);
  }

  private static KStream<String, Row> enrichWithin(Duration distance, Topics topics) {
    record Click(String page, String search) {}
    return topics
        .stream("views")
        .leftJoin(
            topics.stream("searches"),
            Click::new,
            JoinWindows.ofTimeDifferenceAndGrace(distance, GRACE))
        .leftJoin(
            profiles(topics),
            (user, click, profile) ->
                Row.of(
                    "user", user,
                    "name", profile == null ? null : profile.name,
                    "zip", profile == null ? null : profile.zip,
                    "search", click.search,
                    "page", click.page));
  }

  /** Views by the zip code of their user: the key changes, so that they go through a topic. */
  static KStream<String, Row> countByZip(Topics topics) {
    return topics
        .stream("views")
        .leftJoin(profiles(topics), (page, profile) -> profile == null ? "" : profile.zip)
        .groupBy((user, zip) -> zip)
        .count()
        .toStream()
        .mapValues((zip, count) -> Row.of("zip", zip.isEmpty() ? null : zip, "count", count));
  }

  private static KTable<String, Profile> profiles(Topics topics) {
    return topics.table("profiles").mapValues(text -> Json.read(text, Profile.class));
  }

  /** Orders with the address of their user. A user who moves leads to no row. */
  static KStream<String, Row> joinTable(Topics topics) {
    return topics
        .stream("orders")
        .leftJoin(
            topics.table("users"),
            (user, order, address) -> Row.of("user", user, "order", order, "address", address));
  }

  /** Price and stock of each item: a change of either leads to a row, once both are known. */
  static KStream<String, Row> joinTables(Topics topics) {
    record Known(String price, String stock) {}
    return topics
        .table("prices")
        .join(topics.table("stocks"), Known::new)
        .toStream()
        .filter((item, known) -> known != null)
        .mapValues(
            (item, known) -> Row.of("item", item, "price", known.price, "stock", known.stock));
  }

  /** Orders, each with the address of its user, as a table: a user who moves changes all of them. */
  static KStream<String, Row> joinForeignKey(Topics topics) {
    return topics
        .table("orders")
        .join(
            topics.table("users"),
            text -> Json.read(text, Order.class).user,
            (text, address) -> {
              Order order = Json.read(text, Order.class);
              return Row.of("user", order.user, "address", address, "order", order.order);
            })
        .toStream();
  }

  /** Orders with the origin of their item: every instance has all items, and no order moves. */
  static KStream<String, Row> joinGlobal(Topics topics) {
    return topics
        .stream("orders")
        .join(
            topics.global("items"),
            (user, item) -> item,
            (user, item, origin) -> Row.of("user", user, "item", item, "origin", origin));
  }

  /** The same with the orders sent to the partition of their item, for more items than fit. */
  static KStream<String, Row> joinRepartitioned(Topics topics) {
    return topics
        .stream("orders")
        .map((user, item) -> KeyValue.pair(item, user))
        .join(
            topics.table("items"),
            (item, user, origin) -> Row.of("user", user, "item", item, "origin", origin));
  }
}

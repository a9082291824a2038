import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;

/** A topic as a stream and as a table in Kafka Streams: what it is read as decides. */
final class Streams {
  private static final int KEEP_EMPTY = -1;

  record Sum(long sum, long records) {}

  /** As a stream: each record is a change, and they add up. */
  static KStream<String, Row> sumChanges(Topics topics) {
    return topics
        .stream("records")
        .groupByKey()
        .aggregate(
            () -> new Sum(0, 0),
            (key, value, sum) -> new Sum(sum.sum + Long.parseLong(value), sum.records + 1),
            Materialized.with(Serdes.String(), Json.of(Sum.class)))
        .toStream()
        .mapValues((key, sum) -> Row.of("key", key, "sum", sum.sum, "records", sum.records));
  }

  /** As a table: each record replaces the one before of its key; without a value it deletes it. */
  static KStream<String, Row> keepLast(Topics topics) {
    return toRows(topics.table("records"));
  }

  /** Wrong: a value that cannot be read becomes null, and that means: delete it. */
  static KStream<String, Row> keepLastNumber(Topics topics) {
    return toRows(topics.table("records").mapValues(text -> text.matches("\\d+") ? text : null));
  }

  private static KStream<String, Row> toRows(KTable<String, String> table) {
    return table.toStream().mapValues((key, last) -> Row.of("key", key, "last", last));
  }

  /** Word count: split where no word is, in lower case, without `the`. */
  static KStream<String, Row> countWords(Topics topics) {
    return countAllBut(Set.of("", "the"), topics);
  }

  /** Wrong: a text that begins or ends with a separator has an empty word there. */
  static KStream<String, Row> countWordsAndGaps(Topics topics) {
    return countAllBut(Set.of("the"), topics);
  }

  /** The word becomes the key, so that the words go through a topic first. */
  private static KStream<String, Row> countAllBut(Set<String> ignored, Topics topics) {
    return topics
        .stream("records")
        .flatMapValues(text -> List.of(text.toLowerCase(Locale.ROOT).split("\\W+", KEEP_EMPTY)))
        .filter((key, word) -> !ignored.contains(word))
        .groupBy((key, word) -> word)
        .count()
        .toStream()
        .mapValues((word, count) -> Row.of("word", word, "count", count));
  }
}

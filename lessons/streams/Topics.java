import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;

/** The topics of a case, with keys and values as texts. */
record Topics(StreamsBuilder builder, String prefix) {
  KStream<String, String> stream(String name) {
    return builder.stream(prefix + name);
  }

  /** Reads a topic as a table in a store: without one, a table only passes its records on. */
  KTable<String, String> table(String name) {
    return builder.table(prefix + name, Materialized.as(name));
  }

  /** Reads a whole topic. Records that come later are in no order with those of other topics. */
  GlobalKTable<String, String> global(String name) {
    return builder.globalTable(prefix + name);
  }
}

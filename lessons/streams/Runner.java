import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KafkaStreams.State;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription.Node;
import org.apache.kafka.streams.TopologyDescription.Source;
import org.apache.kafka.streams.TopologyDescription.Subtopology;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers;

/**
 * Runs a function of a lesson's Streams.java as an application of Kafka Streams, on the topics that
 * begin with a prefix; its rows go to the topic `out`.
 *
 * <p>Arguments: bootstrap servers, application id, prefix, function, state folder. When it runs, it
 * prints the topics whose offsets it commits; then, for each line of its input, how many records it
 * has dropped so far, in windows once for each of them. It ends with its input.
 */
public final class Runner {
  private static final int COMMIT_MILLISECONDS = 100;
  private static final int FETCH_WAIT_MILLISECONDS_MAX = 10;

  public static void main(String[] arguments) throws Exception {
    String id = arguments[1];
    String prefix = arguments[2];
    StreamsBuilder builder = new StreamsBuilder();
    var function = Class.forName("Streams").getDeclaredMethod(arguments[3], Topics.class);
    var rows = (KStream<?, ?>) function.invoke(null, new Topics(builder, prefix));
    // A table says with a null that there is no row any more.
    rows.filter((key, row) -> row != null)
        .map((key, row) -> KeyValue.pair("", (Row) row))
        .to(prefix + "out", Produced.with(Serdes.String(), Json.of(Row.class)));
    Topology topology = builder.build();
    try (KafkaStreams streams =
        new KafkaStreams(topology, properties(arguments[0], id, arguments[4]))) {
      streams.setUncaughtExceptionHandler(
          error -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
            return null;
          });
      CountDownLatch running = new CountDownLatch(1);
      streams.setStateListener(
          (state, before) -> {
            if (state == State.RUNNING) {
              running.countDown();
            }
          });
      streams.start();
      running.await();
      System.out.println(String.join(" ", committed(topology, id, prefix)));
      BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
      while (input.readLine() != null) {
        System.out.println(dropped(streams));
      }
    }
  }

  private static Properties properties(String servers, String id, String folder) {
    Properties properties = new Properties();
    properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, folder);
    properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, InMemoryDslStoreSuppliers.class);
    // Each change leads to a row, as in Faust.
    properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
    properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, COMMIT_MILLISECONDS);
    properties.put(
        StreamsConfig.consumerPrefix(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG),
        FETCH_WAIT_MILLISECONDS_MAX);
    // By default, rows of a left join that no record matched come once a second by the clock.
    properties.put(
        StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
    return properties;
  }

  /** Finds the topics of which offsets are committed: not those of global tables. */
  private static Set<String> committed(Topology topology, String id, String prefix) {
    Set<String> found = new TreeSet<>();
    for (Subtopology part : topology.describe().subtopologies()) {
      for (Node node : part.nodes()) {
        if (node instanceof Source source) {
          for (String topic : source.topicSet()) {
            found.add(topic.startsWith(prefix) ? topic : id + "-" + topic);
          }
        }
      }
    }
    return found;
  }

  private static long dropped(KafkaStreams streams) {
    return streams.metrics().values().stream()
        .filter(metric -> metric.metricName().name().equals("dropped-records-total"))
        .mapToLong(metric -> ((Number) metric.metricValue()).longValue())
        .sum();
  }
}

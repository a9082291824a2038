import static java.time.Duration.ofHours;
import static java.time.Duration.ofMinutes;
import static java.time.Duration.ofSeconds;
import static org.apache.kafka.streams.kstream.Suppressed.BufferConfig.unbounded;
import static org.apache.kafka.streams.kstream.Suppressed.untilWindowCloses;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.WallclockTimestampExtractor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Windows in Kafka Streams: how long one takes late records is said with its size. All windows begin
 * at multiples of their advance, so that there is none for the case `unaligned`.
 */
final class Streams {
  private static final Duration MINUTE = ofMinutes(1);
  private static final TimeWindows TUMBLING = TimeWindows.ofSizeAndGrace(ofSeconds(5), MINUTE);

  private static final Grouped<String, String> TEXTS =
      Grouped.with(Serdes.String(), Serdes.String());

  record Trades(long number, double lowest, double total) {}

  /** Each 5 seconds by themselves. A late record corrects its window. */
  static KStream<Windowed<String>, Row> countTumbling(Topics topics) {
    return toRows(count(topics, TUMBLING));
  }

  /** The same, with one row of each window, when no record can change it any more. */
  static KStream<Windowed<String>, Row> countFinal(Topics topics) {
    return toRows(count(topics, TUMBLING).suppress(untilWindowCloses(unbounded())));
  }

  /** 5 minutes, once a minute: each record is in five windows. */
  static KStream<Windowed<String>, Row> countHopping(Topics topics) {
    return toRows(count(topics, TimeWindows.ofSizeAndGrace(ofMinutes(5), ofHours(4)).advanceBy(MINUTE)));
  }

  /** Wrong: what is late is dropped. */
  static KStream<Windowed<String>, Row> countWithoutGrace(Topics topics) {
    return toRows(count(topics, TimeWindows.ofSizeWithNoGrace(ofSeconds(5))));
  }

  /** Wrong: the time of a record is that at which it is read. */
  static KStream<Windowed<String>, Row> countByArrival(Topics topics) {
    Consumed<String, String> byArrival = Consumed.with(new WallclockTimestampExtractor());
    return toRows(
        topics
            .builder()
            .<String, String>stream(topics.prefix() + "records", byArrival)
            .groupByKey(TEXTS)
            .windowedBy(TUMBLING)
            .count());
  }

  private static KTable<Windowed<String>, Long> count(Topics topics, TimeWindows windows) {
    return byKey(topics).windowedBy(windows).count();
  }

  /** Visits that end after 30 minutes without a click. A late click can join two of them. */
  static KStream<Windowed<String>, Row> countSessions(Topics topics) {
    Duration gap = ofMinutes(30);
    return byKey(topics)
        .windowedBy(SessionWindows.ofInactivityGapAndGrace(gap, ofMinutes(30)))
        .count()
        .suppress(untilWindowCloses(unbounded()))
        .toStream()
        .mapValues((visit, clicks) -> toRow(visit, gap, clicks));
  }

  /** Of each ticker, every second, the last 5: number of trades, lowest and average ask. */
  static KStream<Windowed<String>, Row> summarizeTrades(Topics topics) {
    return byKey(topics)
        .windowedBy(TimeWindows.ofSizeAndGrace(ofSeconds(5), MINUTE).advanceBy(ofSeconds(1)))
        .aggregate(
            () -> new Trades(0, Double.POSITIVE_INFINITY, 0),
            (ticker, text, trades) -> {
              double ask = Double.parseDouble(text);
              return new Trades(
                  trades.number + 1, Math.min(trades.lowest, ask), trades.total + ask);
            },
            Materialized.with(Serdes.String(), Json.of(Trades.class)))
        .toStream()
        .mapValues(
            (window, trades) ->
                Row.of(
                    "key", window.key(),
                    "start", Row.time(window.window().start()),
                    "trades", trades.number,
                    "lowest", trades.lowest,
                    "average", trades.total / trades.number));
  }

  /**
   * A timer: a row because nothing came. Time is looked at after the records that were read together,
   * not after each: a sensor that was silent and speaks in the same records is not noticed.
   */
  static KStream<String, Row> reportSilence(Topics topics) {
    topics
        .builder()
        .addStateStore(
            Stores.keyValueStoreBuilder(
                Stores.inMemoryKeyValueStore(Silence.LAST), Serdes.String(), Serdes.Long()));
    return topics.stream("records").process(Silence::new, Silence.LAST);
  }

  static final class Silence extends ContextualProcessor<String, String, String, Row> {
    private static final String LAST = "last";
    private static final long SILENCE = ofSeconds(60).toMillis();
    private static final long GRACE = ofSeconds(1).toMillis();

    private KeyValueStore<String, Long> last;

    @Override
    public void init(ProcessorContext<String, Row> context) {
      super.init(context);
      last = context.getStateStore(LAST);
      context.schedule(ofSeconds(1), PunctuationType.STREAM_TIME, this::report);
    }

    @Override
    public void process(Record<String, String> record) {
      if (record.timestamp() <= context().currentStreamTimeMs() - GRACE) {
        context().forward(record.withValue(Row.of("dropped", 1)));
        return;
      }
      Long before = last.get(record.key());
      last.put(record.key(), before == null ? record.timestamp() : Math.max(before, record.timestamp()));
    }

    private void report(long now) {
      List<KeyValue<String, Long>> silent = new ArrayList<>();
      try (var all = last.all()) {
        all.forEachRemaining(
            each -> {
              if (each.value + SILENCE <= now - GRACE) {
                silent.add(each);
              }
            });
      }
      for (KeyValue<String, Long> each : silent) {
        last.delete(each.key);
        Row row = Row.of("key", each.key, "silent_since", Row.time(each.value));
        context().forward(new Record<>(each.key, row, now));
      }
    }
  }

  private static KGroupedStream<String, String> byKey(Topics topics) {
    return topics.stream("records").groupByKey(TEXTS);
  }

  private static KStream<Windowed<String>, Row> toRows(KTable<Windowed<String>, Long> counts) {
    return counts.toStream().mapValues((window, count) -> toRow(window, Duration.ZERO, count));
  }

  /** Makes a row of a window; a session of Kafka Streams ends with its last record. */
  private static Row toRow(Windowed<String> window, Duration after, long count) {
    return Row.of(
        "key", window.key(),
        "start", Row.time(window.window().start()),
        "end", Row.time(window.window().end() + after.toMillis()),
        "count", count);
  }
}

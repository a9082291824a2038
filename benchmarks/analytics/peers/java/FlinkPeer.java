import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.functions.ScalarFunction;

/**
 * The question of the analytics job, answered in Flink SQL: the lines of confirmed orders are
 * joined with the versions of users and items that were valid at their time (a temporal join), and
 * what is local is counted per hour, type and place, with checkpoints and the state on the heap.
 *
 * <p>An order waits until the watermark, ten minutes behind, has passed it; so the answer is exact
 * for what is at most so late. An order that is later is left out, a move that is later changes
 * nothing. The topics hold no cancellations here.
 *
 * <p>Arguments: bootstrap servers, threads, lines to wait for, output topic, state folder. Prints
 * how far it has come, a line of JSON each time, and ends when all that was in the topics at its
 * start is counted: only an end of the topics lets the watermark pass the last orders.
 */
public final class FlinkPeer {
  private static final String TABLES =
      """
      CREATE TABLE users (
        user_id STRING,
        address STRING,
        effective_at TIMESTAMP_LTZ(3),
        WATERMARK FOR effective_at AS effective_at - INTERVAL '10' MINUTE,
        PRIMARY KEY (user_id) NOT ENFORCED
      ) WITH ('connector' = 'upsert-kafka', 'topic' = 'users.v1', %1$s, %2$s);
      CREATE TABLE items (
        item_id STRING,
        origin STRING,
        type STRING,
        effective_at TIMESTAMP_LTZ(3),
        WATERMARK FOR effective_at AS effective_at - INTERVAL '10' MINUTE,
        PRIMARY KEY (item_id) NOT ENFORCED
      ) WITH ('connector' = 'upsert-kafka', 'topic' = 'items.v1', %1$s, %2$s);
      CREATE TABLE orders (
        user_id STRING,
        lines ARRAY<ROW<item_id STRING, quantity BIGINT, unit_price DECIMAL(12, 2)>>,
        ordered_at TIMESTAMP_LTZ(3),
        WATERMARK FOR ordered_at AS ordered_at - INTERVAL '10' MINUTE
      ) WITH (
        'connector' = 'kafka', 'topic' = 'orders.v1', 'scan.startup.mode' = 'earliest-offset',
        'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601', %1$s,
        'scan.bounded.mode' = 'latest-offset'
      );
      CREATE TABLE cells (
        `hour` BIGINT,
        type STRING,
        place STRING,
        users BIGINT,
        purchases BIGINT,
        quantity BIGINT,
        cents BIGINT,
        PRIMARY KEY (`hour`, type, place) NOT ENFORCED
      ) WITH (
        'connector' = 'upsert-kafka', 'topic' = '%3$s', 'key.format' = 'json',
        'value.format' = 'json', %1$s
      )
      """;

  private static final String SERVERS = "'properties.bootstrap.servers' = '%s'";
  private static final String UPSERTS =
      """
      'scan.bounded.mode' = 'latest-offset', 'key.format' = 'raw', 'value.format' = 'json',
        'value.json.timestamp-format.standard' = 'ISO-8601'\
      """;

  private static final String COUNT =
      """
      INSERT INTO cells
      SELECT
        `hour`, type, place, COUNT(DISTINCT user_id), COUNT(*), SUM(quantity), SUM(cents)
      FROM (
        SELECT
          UNIX_TIMESTAMP(DATE_FORMAT(line.ordered_at, 'yyyy-MM-dd HH:00:00')) AS `hour`,
          item.type,
          buyer.address AS place,
          line.user_id,
          line.quantity,
          CAST(line.quantity * line.unit_price * 100 AS BIGINT) AS cents
        FROM (
          SELECT user_id, ordered_at, item_id, quantity, unit_price
          FROM orders CROSS JOIN UNNEST(lines) AS each_line (item_id, quantity, unit_price)
        ) AS line
        JOIN users FOR SYSTEM_TIME AS OF line.ordered_at AS buyer
          ON buyer.user_id = line.user_id
        JOIN items FOR SYSTEM_TIME AS OF line.ordered_at AS item
          ON item.item_id = line.item_id
        WHERE IS_LOCAL(buyer.address, item.origin)
      )
      GROUP BY `hour`, type, place
      """;

  private static final Map<String, String> SETTINGS =
      Map.of(
          "execution.checkpointing.interval", "5 s",
          "execution.checkpointing.mode", "EXACTLY_ONCE",
          "state.backend.type", "hashmap",
          "pipeline.object-reuse", "true",
          "table.local-time-zone", "UTC",
          "table.exec.mini-batch.enabled", "true",
          "table.exec.mini-batch.allow-latency", "1 s",
          "table.exec.mini-batch.size", "50000",
          "restart-strategy.type", "none",
          "rest.bind-port", "0");

  /** The condition of the question, which also counts the lines that got as far as this. */
  public static final class IsLocal extends ScalarFunction {
    public boolean eval(String address, String origin) {
      Progress.addOne();
      return address.equals(origin);
    }

    @Override
    public boolean isDeterministic() {
      return false;
    }
  }

  public static void main(String[] arguments) throws Exception {
    String threads = arguments[1];
    Configuration settings = Configuration.fromMap(SETTINGS);
    settings.setString("parallelism.default", threads);
    settings.setString("taskmanager.numberOfTaskSlots", threads);
    settings.setString("execution.checkpointing.dir", "file://" + arguments[4]);
    TableEnvironment tables =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
    tables.createTemporarySystemFunction("IS_LOCAL", IsLocal.class);
    for (String statement :
        TABLES.formatted(SERVERS.formatted(arguments[0]), UPSERTS, arguments[3]).split(";")) {
      tables.executeSql(statement);
    }
    TableResult counting = tables.executeSql(COUNT);
    Thread teller = new Thread(FlinkPeer::tell);
    teller.setDaemon(true);
    teller.start();
    counting.await();
    Progress.print();
    System.exit(Progress.joined() == Long.parseLong(arguments[2]) ? 0 : 1);
  }

  static void tell() {
    try {
      while (true) {
        Thread.sleep(Progress.EVERY_MILLISECONDS);
        Progress.print();
      }
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
    }
  }

  private FlinkPeer() {}
}

import java.time.Instant;
import java.util.LinkedHashMap;

/** A row of an answer; a value can be null. */
final class Row extends LinkedHashMap<String, Object> {
  /** Makes a row of names, each followed by its value. */
  static Row of(Object... pairs) {
    Row row = new Row();
    for (int at = 0; at < pairs.length; at += 2) {
      row.put((String) pairs[at], pairs[at + 1]);
    }
    return row;
  }

  /** Formats milliseconds since 1970. */
  static String time(long milliseconds) {
    return Instant.ofEpochMilli(milliseconds).toString();
  }
}

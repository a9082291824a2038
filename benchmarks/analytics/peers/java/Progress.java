import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;

/** How many lines of orders a peer has joined so far, printed as lines of JSON. */
final class Progress {
  static final long EVERY_MILLISECONDS = 100;

  private static final LongAdder JOINED = new LongAdder();

  private Progress() {}

  static void addOne() {
    JOINED.increment();
  }

  static long joined() {
    return JOINED.sum();
  }

  static void print() {
    var system =
        (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    System.out.printf(
        Locale.ROOT,
        "{\"at\":%.3f,\"joined\":%d,\"cpu\":%.3f}%n",
        System.currentTimeMillis() / 1e3,
        joined(),
        system.getProcessCpuTime() / 1e9);
  }
}

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** Values of a class as JSON. */
final class Json {
  private static final ObjectMapper MAPPER =
      new ObjectMapper()
          .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);

  static <T> Serde<T> of(Class<T> type) {
    return Serdes.serdeFrom((topic, value) -> write(value), (topic, bytes) -> read(bytes, type));
  }

  static <T> T read(String text, Class<T> type) {
    try {
      return MAPPER.readValue(text, type);
    } catch (JsonProcessingException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static <T> T read(byte[] bytes, Class<T> type) {
    try {
      return bytes == null ? null : MAPPER.readValue(bytes, type);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static byte[] write(Object value) {
    try {
      return value == null ? null : MAPPER.writeValueAsBytes(value);
    } catch (JsonProcessingException error) {
      throw new UncheckedIOException(error);
    }
  }
}

"""The question of analytics-spark, answered as Kafka Streams does: joined by arrival."""

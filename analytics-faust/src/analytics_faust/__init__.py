"""The same question as analytics-spark's, asked as Kafka Streams does: joined by arrival."""

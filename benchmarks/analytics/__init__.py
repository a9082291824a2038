"""How fast orders become cells, compared with Kafka Streams."""

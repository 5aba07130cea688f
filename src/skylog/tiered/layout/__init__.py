"""Object layouts of remote segments: Aiven's plugin, and Kafka's LocalTieredStorage."""

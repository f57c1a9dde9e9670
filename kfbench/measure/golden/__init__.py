"""Golden vectors: logs that Apache Kafka's own classes wrote. kfbench is checked against them."""

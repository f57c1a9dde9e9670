"""Our own proposals, apart from Kafka's formats and Kafka's proposals. The core finds them by entry points only."""

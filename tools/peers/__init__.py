"""Other implementations of Kafka's formats beside ours, on the same records in the same rounds: `make peers`."""

"""The parts that all families of workloads share."""

"""Profile a real broker: which share of its CPU time goes to the record format, the codec, the network and the rest."""

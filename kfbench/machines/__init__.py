"""Results by machine: one JSON file per machine, from a stored run, without anything that identifies the machine."""

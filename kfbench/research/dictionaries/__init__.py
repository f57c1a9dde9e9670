"""Topic dictionaries: a zstd dictionary per topic, trained on its records and stored in front of its batches.

A zstd dictionary as an argument is core (`kfbench.Dictionary`, `kfbench.train_dictionary`, `encode(dictionary=)`). Here
are the measurements and the command around it (docs/dictionaries.md, docs/adr/0015).
"""

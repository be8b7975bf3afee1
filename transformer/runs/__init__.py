"""A run is a folder and a trainer is a process: starting, watching, queueing and archiving runs."""

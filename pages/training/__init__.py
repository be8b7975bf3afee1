"""What the Train and Runs pages share: the plan in the fields, its start, and runs as they stand or move."""

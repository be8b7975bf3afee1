"""Shared by the Train and Runs pages: the plan in the fields, and a run at rest or in progress."""

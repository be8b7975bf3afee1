"""Runs at work seen many times a second: each component follows a stream, and the page is not run again for it."""

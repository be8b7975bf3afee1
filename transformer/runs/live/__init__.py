"""A run at work seen many times a second: what its model writes for the sentences that somebody watches."""

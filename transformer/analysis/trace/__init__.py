"""A whole pass, one step after the other, each computed again."""

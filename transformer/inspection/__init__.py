"""What was recorded of a decoding, and two decodings aligned."""

"""Records of a decoding, and two decodings aligned."""

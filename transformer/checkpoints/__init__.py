"""Models on disk: safetensors and JSON, cards, and folders for other engines."""

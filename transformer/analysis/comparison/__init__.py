"""Two models or two sentences side by side."""

"""The commands of `python -m transformer`."""

from transformer import check_memory

check_memory()  # before a command imports PyTorch

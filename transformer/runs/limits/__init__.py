"""The limits of a visitor on a shared machine."""

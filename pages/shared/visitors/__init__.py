"""Recognises visitors: by a signed cookie, the header of a trusted proxy, or a login."""

"""The server's own settings, on a socket like Streamlit's."""

import socket

from serve import send_at_once


def test_what_is_accepted_sends_at_once():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        send_at_once()
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

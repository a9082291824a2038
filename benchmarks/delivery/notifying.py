"""Notifies a relay every millisecond, as an API under load does after its commits."""

import socket
import sys
import time

from shared.runtime.relay_notifier import MINIMUM_GAP_SECONDS


def notify(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        while True:
            sock.sendto(b"", (host, port))
            time.sleep(MINIMUM_GAP_SECONDS)


if __name__ == "__main__":
    notify(sys.argv[1], int(sys.argv[2]))

"""A port for processes that a test starts."""
import contextlib
import random
import socket

# Below those that the kernel gives to outgoing connections: one of them could
# take the port before the process that it is meant for does.
PORTS = range(20000, 32768)


def free_port():
    draw = random.SystemRandom()
    while True:
        with contextlib.closing(socket.socket()) as probe:
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", draw.choice(PORTS)))
                return probe.getsockname()[1]

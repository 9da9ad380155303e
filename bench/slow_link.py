"""Two network namespaces, and a link between them that delays each packet: two
machines with a slow network. Needs root, iproute2 and /dev/net/tun."""
import contextlib
import fcntl
import heapq
import itertools
import os
import select
import struct
import subprocess
import threading
import time

ADDRESSES = "10.213.78.1", "10.213.78.2"
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _tun(name):
    """A device whose packets this process reads and writes, wherever it is."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, _TUNSETIFF,
                struct.pack("16sH", name.encode(), _IFF_TUN | _IFF_NO_PI))
    return file


def _relay(ends, seconds, closed):
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    number, waiting = itertools.count(), []
    while not closed.is_set():
        wait = max(waiting[0][0] - time.monotonic(), 0) if waiting else 0.05
        for end in select.select(ends, [], [], wait)[0]:
            with contextlib.suppress(BlockingIOError):
                heapq.heappush(waiting, (time.monotonic() + seconds,
                                         next(number), other[end],
                                         os.read(end, 1 << 16)))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, end, packet = heapq.heappop(waiting)
            with contextlib.suppress(OSError):  # an end whose device is down
                os.write(end, packet)


@contextlib.contextmanager
def slow_link(seconds):
    """The names of the namespaces: `ip netns exec NAME PROGRAM`. What one sends
    arrives at the other so many seconds later."""
    names = [f"penstock-link-{os.getpid()}-{end}" for end in range(2)]
    closed, ends = threading.Event(), []
    with contextlib.ExitStack() as undone:
        for number, (name, address) in enumerate(zip(names, ADDRESSES)):
            device = f"slow{number}"
            _ip("netns", "add", name)
            undone.callback(_ip, "netns", "del", name)
            ends.append(_tun(device))
            undone.callback(os.close, ends[-1])
            _ip("link", "set", device, "netns", name)
            _ip("-n", name, "address", "add", f"{address}/24", "dev", device)
            _ip("-n", name, "link", "set", device, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        relay = threading.Thread(target=_relay, args=(ends, seconds, closed))
        relay.start()
        undone.callback(relay.join)
        undone.callback(closed.set)
        yield names

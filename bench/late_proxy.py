"""A PostgreSQL server that is further away than it is."""
import asyncio
import contextlib
import multiprocessing
import pathlib
import re
import tempfile
import time


async def hand_on(reader, writer, delay_s):
    """What comes in goes out as much later, in its order."""
    late = asyncio.Queue(256)

    async def send():
        while True:
            due, data = await late.get()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    sending = asyncio.create_task(send())
    try:
        while data := await reader.read(1 << 16):
            await late.put((time.monotonic() + delay_s, data))
    except ConnectionError:
        pass
    await late.put((0, b""))
    await sending


def proxy(listens, server, delay_s):
    async def connected(reader, writer):
        there, to_there = await asyncio.open_unix_connection(server)
        await asyncio.gather(hand_on(reader, to_there, delay_s),
                             hand_on(there, writer, delay_s),
                             return_exceptions=True)

    async def serve():
        async with await asyncio.start_unix_server(connected, listens) as made:
            await made.serve_forever()

    asyncio.run(serve())


@contextlib.contextmanager
def further_away(uri, delay_s):
    """The URI of the same server, by its socket, behind a proxy that hands each
    byte on so much later, in both directions."""
    folder, port = (re.search(rf"[?&]{key}=([^&]+)", uri)[1]
                    for key in ("host", "port"))
    name = f".s.PGSQL.{port}"
    with tempfile.TemporaryDirectory(prefix="penstock-proxy-") as made:
        between = multiprocessing.get_context("fork").Process(
            target=proxy, daemon=True,
            args=(str(pathlib.Path(made) / name), f"{folder}/{name}", delay_s))
        between.start()
        try:
            while not (pathlib.Path(made) / name).exists():
                time.sleep(0.01)
            yield uri.replace(f"host={folder}", f"host={made}")
        finally:
            between.kill()
            between.join()

"""Program of a worker process that maps clients' files and copies, so that it dies of bad ones.

It is run by its path and imports only the standard library, so that it starts fast and stays small:

    driver --- ORDER, a file beside MAP ---> worker
    driver <--- 0 done, 1 refused ---------- worker     bytes go through shared memory

DROP has no answer. A file that ends within a page reads as zeros up to the end of the page, without
SIGBUS; such a copy is refused.
"""

import array
import mmap
import resource
import signal
import socket
import struct
import sys

ORDER = struct.Struct("<BQQQB")
"""Kind of order, identifier of the pool, first byte, count of bytes, whether to map for writing."""
MAP, READ, WRITE, DROP = range(4)
DONE, REFUSED = b"\0", b"\1"
STAGING_BYTES = 4 << 20
"""Most bytes that one order copies."""
_FILE_BYTES = array.array("i").itemsize


def serve(connection: socket.socket, staging: memoryview) -> None:
    """Carry out orders until the driver hangs up."""
    pools: dict[int, tuple[mmap.mmap, int]] = {}  # mapping and its offset in the file
    while True:
        order, files = _received(connection)
        if not order:
            return
        what, pool, start, count, is_writable = ORDER.unpack(order)
        answer = DONE
        if what == MAP:
            access = mmap.PROT_READ | (mmap.PROT_WRITE if is_writable else 0)
            try:
                mapped = mmap.mmap(files[0], count, mmap.MAP_SHARED, access, offset=start)
                pools[pool] = mapped, start
            except (OSError, ValueError):
                answer = REFUSED
        elif what == DROP:
            del pools[pool]
        else:
            mapped, offset = pools[pool]
            with memoryview(mapped) as whole, whole[start : start + count] as part:
                if what == READ:
                    staging[:count] = part
                else:
                    part[:] = staging[:count]
            if mapped.size() < offset + start + count:
                answer = REFUSED
        for file in files:
            socket.close(file)
        if what != DROP:
            connection.send(answer)


def _received(connection: socket.socket) -> tuple[bytes, list[int]]:
    order, control, _, _ = connection.recvmsg(
        ORDER.size, socket.CMSG_SPACE(_FILE_BYTES), socket.MSG_CMSG_CLOEXEC
    )
    files = array.array("i")
    for _, _, data in control:
        files.frombytes(data)
    return order, list(files)


def main(connection: int, staging: int) -> None:
    """Serve on two descriptors: a socket and the shared memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles it and hangs up
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = memoryview(mmap.mmap(staging, STAGING_BYTES))
    with socket.socket(fileno=connection) as driver:
        serve(driver, memory)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

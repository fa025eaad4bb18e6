"""The probe: a small client and server that show, from inside, what a labelled path does.

This file is run as a program on both hosts, under the very label that the measured processes get
(``runcon -l LEVEL python3 -I -S probe.py …``): the server tells each client the label that its
socket reports for the peer, and echoes. It needs nothing but the standard library.

    probe.py server ADDRESS PORT LIFETIME_S
    probe.py client ADDRESS PORT SOURCE PAYLOAD_BYTES WARM_UP_S

The client prints two JSON lines: first what it was told and what its own socket says, then, after
the warm-up, the rate of each of its windows and how far the server's clock is ahead of its own.
"""

import json
import select
import socket
import sys
import time

SO_PEERSEC = 31  # include/uapi/asm-generic/socket.h
WINDOW_S = 0.25
AGREE = 0.05  # windows that agree within this fraction end the warm-up
AGREE_COUNT = 3
TIMEOUT_S = 8.0
CLOCK = b"t"  # asks for the server's clock; everything else is echoed
CLOCK_COUNT = 5


def family_of(address):
    """AF_INET6 for an address with a colon, else AF_INET."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def own_label():
    """The label of this process, None where the kernel has no SELinux."""
    try:
        with open("/proc/self/attr/current") as handle:
            return handle.read().rstrip("\0\n") or None
    except OSError:
        return None


def peer_label(connection):
    """The label that the socket reports for its peer, None when it reports none."""
    try:
        # Python's getsockopt takes no buffer above 1024 bytes.
        return connection.getsockopt(socket.SOL_SOCKET, SO_PEERSEC, 1024).rstrip(b"\0").decode()
    except OSError:
        return None


def mss_of(connection):
    """The TCP segment size that the socket uses, bytes."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)


def serve(address, port, lifetime_s):
    """Answer until nobody came for ``lifetime_s`` seconds: a forgotten server ends by itself."""
    listener = socket.socket(family_of(address), socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    datagrams = socket.socket(family_of(address), socket.SOCK_DGRAM)
    datagrams.bind((address, port))
    listener.listen(8)
    clients = []
    while True:
        ready, _, _ = select.select([listener, datagrams, *clients], [], [], lifetime_s)
        if not ready:
            return
        for one in ready:
            if one is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                told = {"label": own_label(), "peer_label": peer_label(connection)}
                connection.sendall(json.dumps(told).encode() + b"\n")
                clients.append(connection)
            elif one is datagrams:
                data, sender = datagrams.recvfrom(65536)
                datagrams.sendto(b"%d" % len(data), sender)
            else:
                try:
                    data = one.recv(4096)
                    if data:
                        one.sendall(b"%.6f\n" % time.time() if data == CLOCK else data)
                except OSError:
                    data = b""
                if not data:
                    one.close()
                    clients.remove(one)


def exchange_datagram(address, port, source, payload_bytes):
    """Send one datagram of the size that must just fit, unfragmented. None if it arrived, else
    what happened."""
    datagrams = socket.socket(family_of(address), socket.SOCK_DGRAM)
    datagrams.bind((source, 0))
    datagrams.settimeout(2.0)
    if family_of(address) == socket.AF_INET:
        # IP_MTU_DISCOVER = IP_PMTUDISC_DO: too large is an error, not two fragments.
        datagrams.setsockopt(socket.IPPROTO_IP, 10, 2)
    last = None
    for _attempt in range(2):
        try:
            datagrams.sendto(b"x" * payload_bytes, (address, port))
            answer = int(datagrams.recv(64))
            if answer == payload_bytes:
                return None
            return "%d of %d bytes arrived" % (answer, payload_bytes)
        except OSError as error:
            last = str(error)
    return last


def warm_up(connection, limit_s):
    """One-byte round trips until three windows agree; transactions a second of each window."""
    rates = []
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        count = 0
        began = time.monotonic()
        while time.monotonic() - began < WINDOW_S:
            connection.sendall(b"r")
            if not connection.recv(1):
                raise OSError("the server closed the connection")
            count += 1
        rates.append(count / (time.monotonic() - began))
        recent = rates[-AGREE_COUNT:]
        if len(recent) == AGREE_COUNT and max(recent) <= min(recent) * (1 + AGREE):
            return rates, True
    return rates, limit_s <= 0


def clock_offset(connection):
    """How far the server's clock is ahead of this one, and how far that may be wrong; seconds.

    The server read its clock between the two moments that the question left and the answer came:
    of several questions the quickest says most (D. Mills, RFC 5905, section 8).
    """
    best = None
    for _number in range(CLOCK_COUNT):
        before = time.time()
        connection.sendall(CLOCK)
        line = b""
        while not line.endswith(b"\n"):
            part = connection.recv(64)
            if not part:
                raise OSError("the server closed the connection")
            line += part
        after = time.time()
        if best is None or after - before < best[1]:
            best = (float(line) - (before + after) / 2, after - before)
    return best[0], best[1] / 2


def ask(address, port, source, payload_bytes, warm_up_s):
    """The client: prints its two lines and returns the exit code."""
    connection = socket.socket(family_of(address), socket.SOCK_STREAM)
    connection.settimeout(TIMEOUT_S)
    try:
        connection.bind((source, 0))
        connection.connect((address, port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line = b""
        while not line.endswith(b"\n"):
            part = connection.recv(4096)
            if not part:
                raise OSError("the server closed the connection before it told the label")
            line += part
    except OSError as error:
        print(json.dumps({"error": str(error), "errno": error.errno}), flush=True)
        return 1
    told = json.loads(line)
    seen = {
        "label": own_label(),
        "peer_label": peer_label(connection),
        "mss": mss_of(connection),
        "source_port": connection.getsockname()[1],
        "server_label": told["label"],
        "server_peer_label": told["peer_label"],
        "datagram_bytes": payload_bytes,
        "datagram_error": exchange_datagram(address, port, source, payload_bytes),
    }
    print(json.dumps(seen), flush=True)
    try:
        rates, agreed = warm_up(connection, warm_up_s)
        offset, uncertainty = clock_offset(connection)
    except OSError as error:
        print(json.dumps({"error": str(error), "errno": error.errno}), flush=True)
        return 1
    rounded = [round(rate, 1) for rate in rates]
    end = {"warm_up_rates": rounded, "steady": agreed}
    end["clock_offset_s"] = round(offset, 6)
    end["clock_uncertainty_s"] = round(uncertainty, 6)
    print(json.dumps(end), flush=True)
    return 0


def main(argv):
    """Entry point of the program."""
    if argv[0] == "server":
        serve(argv[1], int(argv[2]), float(argv[3]))
        return 0
    return ask(argv[1], int(argv[2]), argv[3], int(argv[4]), float(argv[5]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

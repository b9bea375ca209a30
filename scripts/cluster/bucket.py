"""Stands before an S3 server: LISTEN SERVER MODE-FILE.

The file says `well` (all is passed on), `busy` (each request is answered 503) or `late` (each
answer comes after 5 s).
"""

import socket
import sys
import threading
import time

BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def mode():
    with open(sys.argv[3], encoding="ascii") as file:
        return file.read().strip()


def refuse(client):
    client.sendall(BUSY)
    client.shutdown(socket.SHUT_WR)
    client.settimeout(2)
    # Bytes that are not taken would reset the connection before the answer is read.
    while client.recv(1 << 16):
        pass


def close(*ends):
    for end in ends:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            # The other side was faster.
            pass


def requests(client, server, asked):
    try:
        while data := client.recv(1 << 18):
            if mode() == "busy":
                refuse(client)
                break
            asked.set()
            server.sendall(data)
    except OSError:
        pass
    close(client, server)


def answers(client, server, asked):
    try:
        while data := server.recv(1 << 18):
            if asked.is_set() and mode() == "late":
                time.sleep(5)
            asked.clear()
            client.sendall(data)
    except OSError:
        pass
    close(client, server)


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
while True:
    client, _ = listener.accept()
    server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    asked = threading.Event()
    for way in (requests, answers):
        threading.Thread(target=way, args=(client, server, asked), daemon=True).start()

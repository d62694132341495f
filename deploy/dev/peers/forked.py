"""Runs a script in a fork of a process that has done what all such scripts do first.

usage: forked.py serve SOCKET STATEMENTS
       forked.py run SOCKET SCRIPT [ARG...]

Starting on an SDK takes one to two seconds of processor time. serve executes the
statements once, prints a line when it has, and ends a second after the process that
started it. Each run gives it its own streams, environment and directory, in which a
fork runs the script. The fork ends when run does, and run ends as the script does.
"""

import marshal
import os
import socket
import sys


def run(path, *script):
    with socket.socket(socket.AF_UNIX) as conn:
        conn.connect(path)
        request = marshal.dumps((os.getcwd(), dict(os.environ), list(script)))
        socket.send_fds(conn, [len(request).to_bytes(4)], [0, 1, 2])
        conn.sendall(request)
        status = conn.recv(1)
    os._exit(status[0] if status else 1)  # none after a crash


def serve(path, statements):
    import gc
    import select
    import signal

    starter = os.getppid()
    exec(statements, {})
    gc.freeze()  # a fork has its own copy only of what it writes
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that no fork is waited for
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    print("ready", flush=True)
    while os.getppid() == starter:
        if not select.select([listener], [], [], 1)[0]:
            continue
        conn, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            fork(conn)
        conn.close()


def fork(conn):
    import runpy
    import threading
    import traceback

    size, streams, _, _ = socket.recv_fds(conn, 4, 3)
    with conn.makefile("rb") as request:
        directory, environment, sys.argv = marshal.loads(request.read(int.from_bytes(size)))
    for stream, fd in enumerate(streams):
        os.dup2(fd, stream)
        os.close(fd)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)

    exit = os._exit

    def watch():
        conn.recv(1)  # until run has ended
        exit(1)

    def leave(status):
        conn.sendall(bytes([status]))
        exit(status)

    os._exit = leave  # scripts call it too
    threading.Thread(target=watch, daemon=True).start()
    status = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    os._exit(status)


{"serve": serve, "run": run}[sys.argv[1]](*sys.argv[2:])

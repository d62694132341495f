"""A journal of the calls a server executed, kept outside it."""

import json
import os


class Journal:
    """A file that gets one line for each call, before the call is answered."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, tool, arguments):
        try:
            text = json.dumps(arguments, allow_nan=False)
        except (ValueError, RecursionError):  # no JSON, or too deep
            text = '"?"'
        line = f"[{json.dumps(tool)},{text}]\n".encode()
        while line:
            line = line[os.write(self._fd, line):]

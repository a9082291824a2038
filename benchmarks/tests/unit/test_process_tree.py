"""What processes that share memory use together."""

import subprocess
import sys

import pytest

from benchmarks import process_tree

MEBIBYTE = 1 << 20
SHARED_BYTES = 64 * MEBIBYTE
FORKS = f"""
import os, sys
block = bytearray(os.urandom(1)) * {SHARED_BYTES}
for _ in range(3):
    if not os.fork():
        break
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="PSS is of Linux only")
def test_memory_that_forks_share_counts_once() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(4):
            process.stdout.readline()

        resident = process_tree.resident_bytes(process.pid)
        process.stdin.close()

    assert SHARED_BYTES < resident < 2 * SHARED_BYTES

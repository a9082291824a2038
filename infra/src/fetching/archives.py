"""Archives from the network, held against a pinned checksum while they arrive."""

import hashlib
import time
from pathlib import Path

import httpx

from fetching.errors import Failure

DOWNLOAD_SECONDS_MAX = 600
READ_SECONDS_MAX = 30


def download_file(url: str, sha256: str, archive: Path) -> Path:
    """The file at the address, if it is the pinned one.

    Raises:
        Failure: not reachable, too slow, or not the file of the checksum.
    """
    digest = hashlib.sha256()
    deadline = time.monotonic() + DOWNLOAD_SECONDS_MAX
    try:
        with (
            httpx.stream("GET", url, follow_redirects=True, timeout=READ_SECONDS_MAX) as answer,
            archive.open("wb") as file,
        ):
            answer.raise_for_status()
            for block in answer.iter_bytes():
                digest.update(block)
                file.write(block)
                if time.monotonic() > deadline:
                    raise Failure(f"its archive takes longer than {DOWNLOAD_SECONDS_MAX} s")
    except httpx.HTTPError as error:
        raise Failure(f"its archive cannot be fetched: {error}") from error
    if digest.hexdigest() != sha256:
        raise Failure("its archive has another checksum than the pinned one")
    return archive

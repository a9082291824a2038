"""Get the Jaeger binary, then become it: `python -m local_stack.jaeger_launcher`.

It runs under the supervisor, in the background of everything else, because a build takes minutes.
"""

import os
import signal
import sys
import time

from fetching.environment import inherit_for_downloads
from fetching.errors import Failure
from fetching.jaeger_binary import obtain
from local_stack.jaeger import CONFIG, note_path, write_note
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.supervision import STEADY_SECONDS


def main() -> int:
    """Ends with 0 when there is no Jaeger to be had, so that the supervisor leaves it at that."""
    # A build that is stopped must still take its workshop away; Jaeger itself gets the default.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settings = Settings()
    folder, began = RunFolder(settings.run_dir), time.time()
    try:
        binary = obtain(settings, lambda note: write_note(folder, note, began_at_seconds=began))
        note_path(folder).unlink(missing_ok=True)
        for name in inherit_for_downloads():
            del os.environ[name]
        os.execv(binary, [str(binary), "--config", str(CONFIG)])  # noqa: S606
    except Failure as failure:
        reason = str(failure)
    except OSError as error:
        reason = f"{binary} cannot be run ({error.strerror}): check JAEGER_BIN"
    write_note(folder, reason)
    sys.stderr.write(f"hometown: {reason}\n")
    time.sleep(STEADY_SECONDS)  # the supervisor takes a sooner end for a failed start
    return 0


if __name__ == "__main__":
    sys.exit(main())

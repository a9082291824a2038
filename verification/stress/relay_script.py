"""One relay as a process of its own: relay_script.py ours|position|horizon NAME"""

import sys

from shared.outbox import relay_process
from shared.runtime import processes
from shared.runtime.settings import Settings
from verification.stress.peer_relays import PEERS, run_peer

if __name__ == "__main__":
    kind, name = sys.argv[1:]
    settings = processes.read_settings(Settings)
    if kind == "ours":
        processes.run(relay_process.run_relay(name, settings))
    else:
        processes.run(run_peer(PEERS[kind], name, settings))

"""Spark on several machines counts what it counts on one, also when one dies in a batch."""

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta

from test_support.system.clients import rfc3339
from test_support.system.cluster_stack import ClusterStack

JOB = "analytics-job"
WORKERS = ("spark-worker-1", "spark-worker-2")
LOAD = ("rate=20", "seconds=60", "users=40", "items=15", "late=0")
KILLS_MAX = 8
"""Two of them must hit a batch; one can end before the kill arrives."""

BATCH_THAT_RUNS = """
    cd /var/lib/hometown/checkpoint
    for look in $(seq 600); do
        begun=$(ls offsets | grep -x '[0-9]*' | sort -n | tail -n 1)
        [ -e "commits/$begun" ] || { echo "$begun"; exit; }
        sleep 0.05
    done
    echo "no batch within 30 s" >&2
    exit 1
"""
"""A batch writes its offsets first, and its commit last."""

HAS_ENDED = "test -e /var/lib/hometown/checkpoint/commits/{} && echo yes || echo no"
CHECKSUM_FILES = """
    cd /var/lib/hometown/checkpoint
    find offsets commits state -name '*.crc' ! -name '*.sst*'
"""


def killed_in_a_batch(cluster: ClusterStack, worker: str) -> bool:
    """Whether the batch was still running when the worker had ended."""
    batch = cluster.run_inside(JOB, BATCH_THAT_RUNS).strip()
    cluster.kill(worker)
    return cluster.run_inside(JOB, HAS_ENDED.format(batch)).strip() == "no"


def kill_workers(cluster: ClusterStack, loading: Future[str]) -> int:
    """Kill workers one after the other, until two were killed in a batch; returns how many were."""
    met = 0
    for number in range(KILLS_MAX):
        worker = WORKERS[number % len(WORKERS)]
        life = cluster.lives()[worker]
        met += killed_in_a_batch(cluster, worker)
        assert not loading.done(), loading.result()
        cluster.project.wait_until_ready([worker])
        assert cluster.lives()[worker] != life
        if met == len(WORKERS):
            break
    return met


def test_a_worker_that_dies_in_a_batch_changes_nothing(
    cluster: ClusterStack, gap: datetime
) -> None:
    with ThreadPoolExecutor(max_workers=1) as others:
        loading = others.submit(cluster.make_output, "load", f"gap={rfc3339(gap)}", *LOAD)
        met = kill_workers(cluster, loading)
        printed = loading.result()

    assert met == len(WORKERS)
    assert "differences: 0" in printed


def test_state_that_is_split_for_more_cores_counts_on(cluster: ClusterStack, gap: datetime) -> None:
    printed = cluster.make_output("rescale", "partitions=4")

    assert "the state has 4 partitions instead of 2" in printed
    assert "differences: 0" in cluster.make_output("load", f"gap={rfc3339(gap)}", *LOAD)


def test_one_machine_counts_the_same(cluster: ClusterStack, gap: datetime) -> None:
    """`reprocess` counts the same topics by threads of its own process."""
    assert "differences: 0" in cluster.make_output("load", f"gap={rfc3339(gap)}", *LOAD)

    report = cluster.make_output("reprocess")
    cluster.make_output("reprocess", "args=--drop")

    assert "starts at the first records of the topics" in report
    hours = [f"{gap + timedelta(hours=number):%Y-%m-%dT%H} " for number in range(1, 6)]
    assert not [hour for hour in hours if hour in report], report


def test_no_file_of_the_checkpoint_has_a_second_one(cluster: ClusterStack) -> None:
    """A batch is run again after such a kill, and must not meet checksums of its other try."""
    assert cluster.run_inside(JOB, CHECKSUM_FILES) == ""

"""Looking for what becomes true leaves time to what makes it true."""

from types import SimpleNamespace

import pytest

from test_support.system import eventually as module
from test_support.system.eventually import POLL_SECONDS, NotInTime, eventually


@pytest.mark.parametrize(
    ("look_seconds", "rest_seconds"), [(0.001, POLL_SECONDS), (2.0, 2.0)], ids=["quick", "slow"]
)
def test_it_rests_as_long_as_a_look_took(
    monkeypatch: pytest.MonkeyPatch, look_seconds: float, rest_seconds: float
) -> None:
    now = 0.0
    rests: list[float] = []

    def look() -> int:
        nonlocal now
        now += look_seconds
        return len(rests)

    def rest(seconds: float) -> None:
        nonlocal now
        now += seconds
        rests.append(seconds)

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now, sleep=rest))

    assert eventually(look, lambda seen: seen == 3, what="three looks") == 3
    assert rests == pytest.approx([rest_seconds] * 3)
    with pytest.raises(NotInTime, match="never: not within 60 s; last seen: "):
        eventually(look, lambda seen: seen < 0, what="never", seconds_max=60)

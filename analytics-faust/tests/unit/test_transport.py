"""Faust's consumer as it is used here; the negative controls use Faust's own."""

from pathlib import Path

import certifi
import pytest
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.auth import AuthProtocol

from analytics_faust.transport import App, Consumer, broker_options
from shared.runtime.brokers import Brokers, Login

PLACE = TP("users.v1", 0)
LOGIN = Login(username="analytics-faust", password="x", ca_file=Path(certifi.where()))
SERVERS = "kafka-1:9092,kafka-2:9092"


@pytest.mark.parametrize(("kind", "committed"), [(Consumer, 6), (driver.Consumer, 4)])
def test_a_record_that_was_delivered_twice_does_not_hold_up_the_commit(
    kind: type[driver.Consumer], committed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = object.__new__(kind)
    state = {
        "_acked": {PLACE: [2, 3, 3, 4, 5, 7]},
        "_acked_index": {PLACE: {2, 3, 4, 5, 7}},
        "_gap": {PLACE: ()},
        "_committed_offset": {PLACE: 3},
    }
    for name, value in state.items():
        monkeypatch.setattr(consumer, name, value, raising=False)

    assert consumer._new_offset(PLACE) == committed


def test_an_application_has_this_consumer() -> None:
    app = App("test", broker="kafka://127.0.0.1:1")

    assert app.transport.Consumer is Consumer


def test_the_login_is_that_of_all_clients() -> None:
    brokers = Brokers(SERVERS, LOGIN)

    credentials = broker_options(brokers)["broker_credentials"]

    assert broker_options(Brokers(SERVERS)) == {"broker": "kafka://kafka-1:9092;kafka-2:9092"}
    assert credentials.protocol is AuthProtocol.SASL_SSL
    assert credentials.mechanism.value == brokers.options["sasl_mechanism"]
    assert credentials.ssl_context is brokers.options["ssl_context"]

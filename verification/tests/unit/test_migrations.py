"""A migration that was applied somewhere never changes: a change is a new file."""

import pytest

from shared.runtime.declarations import load_declarations
from shared.runtime.postgres import Migration, list_migrations
from test_support.first_services import ADDED

RELEASED = {
    "analytics_spark/0001_cells.sql": "7c8014b81e8207e48c279036d5535627",
    "analytics_spark/0002_changed_hours.sql": "78b2e949650f672116c83340efea3098",
    "analytics_spark/0003_generations.sql": "f6351e01e831057563016a62d5aa67ad",
    "analytics_spark/0004_reconciliations.sql": "ca271b20aaa8a3215cac49c7d036902b",
    "analytics_spark/0005_consumer_progress.sql": "b3ab7eff59ebba05bdde4859bdffa882",
    "orders_svc/0001_read_models.sql": "be33cd63d4ea71b9a3d695a9f8d01099",
    "orders_svc/0002_publications.sql": "80b999a900b92830b3c77ebb40385279",
    "orders_svc/0003_known_reasons.sql": "cf0f7660e28366f8e6a0b1388801afdb",
    "shared/0001_event_store.sql": "09299cd2e99688a8761495f431df0421",
    "shared/0002_relay.sql": "e470aa43227b31e0587ff1a3623357e2",
    "shared/0003_consumers.sql": "3184e86b678876809d39f5416c6a8022",
    "shared/0004_append_without_errors.sql": "f4261fd5c1ea2157ec0ed42bd57cade6",
    "shared/0005_refused_records.sql": "e6f1769095020dc6167fb08690de505f",
    "shared/0006_lost_records.sql": "cf49db99c0dde5b240da7b7590966ed1",
    "shared/0007_streams_by_topic.sql": "1af02d9896e35b741941996377476413",
    "shared/0008_relay_beats.sql": "1da0f959a54a56d6d97189bc808077f9",
    "shared/0009_served_versions.sql": "1e08ec18582c9ae2e8860e1bfc700a8e",
    "users_svc/0001_user_profiles.sql": "e42a7ad5fea3b34c0d5568e02b6eb43d",
    "users_svc/0002_personal_data.sql": "458fb391119a488e9afd4cbf2a6a38c5",
    "users_svc/0003_confirmed_orders.sql": "8e2db2cd4b1e8c27bea09c4a8ed00acf",
    "users_svc/0004_times_of_confirmed_orders.sql": "58931f1b594e0435dbb9012613266c4a",
}
"""The SHA-256 of each migration, half of it. A new file is added here; no line changes."""


def list_all() -> list[Migration]:
    services = [
        each.package
        for each in load_declarations().services
        if each.database and each.name not in ADDED
    ]
    return [each for package in ("shared", *services) for each in list_migrations(package)]


@pytest.mark.parametrize("migration", list_all(), ids=lambda each: each.name)
def test_a_migration_is_what_it_was(migration: Migration) -> None:
    assert migration.sha256.hex()[:32] == RELEASED.get(migration.name), (
        f"add {migration.name} to RELEASED if it is new; otherwise put it back, because a database"
        " that has it refuses to migrate, and write the change as a new migration"
    )


def test_no_migration_is_missing() -> None:
    assert RELEASED.keys() <= {each.name for each in list_all()}

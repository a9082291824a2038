"""The read models of users-svc: the worker updates them, a rebuild creates them from events."""

from shared.projections.read_models import ReadModel
from users_svc import contract, user_profiles

READ_MODELS = (
    ReadModel(
        table="user_profiles",
        topic=contract.TOPIC,
        types=user_profiles.TYPES,
        project=user_profiles.project,
    ),
)

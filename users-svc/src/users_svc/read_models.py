"""The read models of users-svc: the worker keeps them up to date, a rebuild makes them anew."""

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

"""Read models of things-svc: the worker updates them, a rebuild fills them again."""

from shared.projections.read_models import ReadModel
from things_svc import contract, thing_list

READ_MODELS = (
    ReadModel(
        table="thing_list",
        topic=contract.TOPIC,
        types=tuple(contract.CODEC.names),
        project=thing_list.project,
    ),
)

"""Read models of things-svc: the worker updates them, a rebuild fills them again."""

from things_svc import thing_digest, thing_list

READ_MODELS = (thing_list.READ_MODEL, thing_digest.READ_MODEL)

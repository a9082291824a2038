"""The read models of users-svc: the worker updates them, a rebuild creates them from events."""

from users_svc import user_profiles

READ_MODELS = (user_profiles.READ_MODEL,)

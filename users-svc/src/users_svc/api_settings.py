"""The settings of the api, the only process that gets the key to personal data."""

import base64
import binascii
from typing import Annotated

from pydantic import AfterValidator, SecretStr

from users_svc.personal_data import KEY_BYTES
from users_svc.settings import UsersSettings


def check_key(text: SecretStr) -> SecretStr:
    try:
        size = len(base64.b64decode(text.get_secret_value(), validate=True))
    except binascii.Error:
        size = 0
    if size != KEY_BYTES:
        raise ValueError(f"must be {KEY_BYTES} random bytes in base64")
    return text


class UsersApiSettings(UsersSettings):
    personal_data_key: Annotated[SecretStr, AfterValidator(check_key)]
    """Wraps the keys of users: 32 random bytes in base64. Without it all personal data is lost."""

    @property
    def master_key(self) -> bytes:
        return base64.b64decode(self.personal_data_key.get_secret_value())

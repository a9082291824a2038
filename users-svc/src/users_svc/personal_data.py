"""Personal data, sealed with a key for each user; without the key it is lost (crypto-shredding).

Events are kept permanently, in this database and its backups; names are not. A name is recorded
sealed with AES-256-GCM; its user's key is in `personal_data_keys`, wrapped with the service's own
key, and is deleted in the transaction that records `user-deleted` (see the migration).
"""

import base64
import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import TypeAdapter

KEY_BYTES = 32
NONCE_BYTES = 12
"""As NIST SP 800-38D recommends for GCM; random, for few messages under each key."""

FINGERPRINTS = b"fingerprints of requests"
"""What the derived key is for."""

# Returns the valid key: the new one, or the existing one, which is not changed.
ADD_KEY = """
    INSERT INTO personal_data_keys AS known (user_id, wrapped_key, made_at)
    VALUES ($1, $2, $3)
    ON CONFLICT (user_id) DO UPDATE SET wrapped_key = known.wrapped_key
    RETURNING wrapped_key
"""

KEY = "SELECT wrapped_key FROM personal_data_keys WHERE user_id = $1"

ANY_KEY = "SELECT user_id, wrapped_key FROM personal_data_keys LIMIT 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalData:
    """The name and birth year of a person; they are not in `repr`, and so not in logs."""

    name: str = field(repr=False)
    birth_year: int | None = field(repr=False)


PERSONAL_DATA: TypeAdapter[PersonalData] = TypeAdapter(PersonalData)


class WrongMasterKey(ValueError):
    """PERSONAL_DATA_KEY is not the key that this database was created with: restore that one."""


class Vault:
    """Seals and opens; `master_key` (KEY_BYTES) wraps the users' keys."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        master_key: bytes,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._pool = pool
        self._master_key = AESGCM(master_key)
        self.fingerprint_key = hmac.digest(master_key, FINGERPRINTS, "sha256")
        """A key of its own for hashes of requests that hold personal data."""
        self._now = now

    async def check_master_key(self) -> None:
        """Raises WrongMasterKey: the keys of users were wrapped with another master key."""
        if row := await self._pool.fetchrow(ANY_KEY):
            self._unwrap(row["user_id"], row["wrapped_key"])

    async def seal(self, user_id: UUID, data: PersonalData) -> str:
        """The data as text that only the user's key opens; the key is created if there is none.

        Raises:
            WrongMasterKey: the user's key cannot be unwrapped.
        """
        fresh = encrypt(self._master_key, AESGCM.generate_key(8 * KEY_BYTES), user_id)
        wrapped = await self._pool.fetchval(ADD_KEY, user_id, fresh, self._now())
        key = self._unwrap(user_id, wrapped)
        return base64.b64encode(encrypt(key, PERSONAL_DATA.dump_json(data), user_id)).decode()

    async def open(self, user_id: UUID, sealed: str) -> PersonalData | None:
        """The data that was sealed; None if the key was deleted, or replaced by another one.

        Raises:
            WrongMasterKey: the user's key cannot be unwrapped.
        """
        wrapped = await self._pool.fetchval(KEY, user_id)
        if wrapped is None:
            return None
        key = self._unwrap(user_id, wrapped)
        try:
            return PERSONAL_DATA.validate_json(decrypt(key, base64.b64decode(sealed), user_id))
        except InvalidTag:
            return None

    def _unwrap(self, user_id: UUID, wrapped: bytes) -> AESGCM:
        try:
            return AESGCM(decrypt(self._master_key, wrapped, user_id))
        except InvalidTag as error:
            raise WrongMasterKey(WrongMasterKey.__doc__) from error


def encrypt(key: AESGCM, data: bytes, user_id: UUID) -> bytes:
    """The user's id is authenticated, too: one user's data never opens as another's."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + key.encrypt(nonce, data, user_id.bytes)


def decrypt(key: AESGCM, sealed: bytes, user_id: UUID) -> bytes:
    """Raises InvalidTag: another key, another user, or changed bytes."""
    return key.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], user_id.bytes)

"""The secret with which values are masked, and the keys that are made of it."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from runner.errors import RunnerError
from runner.project.variables import Filler, env_var
from runner.yaml_text import Yaml

MASK_SECRET_KEYS = ("mask_secret", "mask_secret_before")
VARIABLE = "RUNNER_MASK_SECRET"
SHORTEST = 16
# The size of a block of SHA-256, which HMAC fills with the key.
BLOCK = 64
# What other keys are made of begins with bytes that no text has: no value of a column has such a hash.
SEAL, NAME = b"\xffseal", b"\xffname"


@dataclass(frozen=True)
class MaskSecret:
    """The secret that masks values now, and the one that did so before, if texts that it has sealed are still there."""

    now: str = field(repr=False)
    before: str = field(default="", repr=False)

    @property
    def keys(self) -> tuple[bytes, bytes, bytes, bytes | None]:
        """The two keys of HMAC-SHA256 as it uses them, and the keys that seal texts now and have sealed them before."""
        seal_before = hashed(self.before, SEAL) if self.before else None
        return _padded(self.now, 0x36), _padded(self.now, 0x5C), hashed(self.now, SEAL), seal_before

    @property
    def name(self) -> str:
        """What tells this secret from others without giving it away."""
        return name_of(self.now)

    @property
    def name_before(self) -> str:
        return name_of(self.before) if self.before else ""

    def masked(self, value: str) -> str:
        """Returns what stands in place of a value whose column is masked with hmac."""
        return hashed(self.now, value.encode()).hex()


def hashed(secret: str, content: bytes) -> bytes:
    return hmac.new(secret.encode(), content, hashlib.sha256).digest()


def name_of(secret: str) -> str:
    return hashed(secret, NAME).hex()[:16]


def _padded(secret: str, byte: int) -> bytes:
    key = secret.encode()
    key = hashlib.sha256(key).digest() if len(key) > BLOCK else key
    return bytes(one ^ byte for one in key.ljust(BLOCK, b"\0"))


def read_mask_secret(yaml: Yaml, filler: Filler) -> MaskSecret | None:
    """Returns the secret that project.yml or the environment names; None if neither does. Raises `mask-secret` for one
    that is too short, or that is written in the file.
    """
    now, before = (_secret(yaml.get(key), key, filler) for key in MASK_SECRET_KEYS)
    return MaskSecret(now, before) if now else None


def _secret(yaml: Yaml | None, key: str, filler: Filler) -> str:
    variable = key.replace("mask_secret", VARIABLE).replace("_before", "_BEFORE")
    if yaml and "{{" not in yaml.text():
        message = f'"{key}" is written in the file: all who see the project would have it'
        raise yaml.error("mask-secret", message, f"{key}: \"{{{{ env_var('NAME') }}}}\"")
    secret = filler.text(yaml) if yaml else env_var(filler.secrets, variable, "")
    filler.secrets.add(key, secret)
    if secret and len(secret) < SHORTEST:
        where = yaml.where() if yaml else None
        message = f"the secret for masks has fewer than {SHORTEST} characters"
        raise RunnerError("mask-secret", message, where, "openssl rand -hex 32 makes one")
    return secret

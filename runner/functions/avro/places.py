"""Where schemas are that messages name by number, as data."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

USUAL_PATH = "schemas/ids/{number}"


@dataclass(frozen=True)
class Registry:
    """Where schemas are, and how to get there. `path` is that of a schema, with `{number}` in it. `login` is a name, a
    colon and a password. `authorities` are certificates that are trusted in place of the system's; `certificate` is
    that of the caller, with its key; both as PEM.
    """

    urls: tuple[str, ...]
    path: str = USUAL_PATH
    login: str = field(default="", repr=False)
    authorities: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)


def tls_context(registry: Registry) -> ssl.SSLContext:
    """What is trusted and shown in connections to a registry; raises ssl.SSLError for what cannot be used."""
    import ssl

    context = ssl.create_default_context(cadata=registry.authorities or None)
    if registry.certificate:
        # Python reads a certificate with its key from a file only; nobody else can read this one.
        handle, path = tempfile.mkstemp()
        try:
            with os.fdopen(handle, "w") as file:
                file.write(registry.certificate)
            context.load_cert_chain(path, password=lambda: "")  # never asks a person
        finally:
            os.unlink(path)
    return context

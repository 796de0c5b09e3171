"""The storages that a target may name."""

from __future__ import annotations

from runner.storage.delta import Delta
from runner.storage.iceberg import Iceberg
from runner.storage.parquet import Parquet
from runner.storage.storage import Storage

STORAGES: dict[str, type[Storage]] = {storage.name: storage for storage in (Parquet, Delta, Iceberg)}

"""The keys with which SQL masks values, in a view: no SQL, plan or log has them."""

from __future__ import annotations

from runner.engine.errors import query_errors
from runner.engine.session import Spark
from runner.project.mask_secret import MaskSecret

KEYS = "hash_inner binary, hash_outer binary, seal binary, seal_before binary"


def mask_keys_view(spark: Spark, secret: MaskSecret | None) -> None:
    """Creates the view `mask_keys` of one row, whose column of the same name has the keys that are made of a secret:
    null without one.
    """
    with query_errors():
        frame = spark.session.createDataFrame([(secret and secret.keys,)], f"mask_keys struct<{KEYS}>")
        frame.createOrReplaceTempView("mask_keys")

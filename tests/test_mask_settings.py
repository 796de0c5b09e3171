"""Masks before there is a Spark: the keys that are made of a secret, and masks that hide nothing."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import pytest

from runner.project.mask_secret import BLOCK, MaskSecret
from runner.project.masks import unmatched
from runner.project.tables_seen import ColumnSeen, TableSeen, TablesSeen
from runner.run.workspace import ProjectArguments, read_project_of

PROJECT = """
sources:
  - name: shop
    format: canal
    files: in/*
    tables:
      - {name: shop.customers, key: id, mask: {phone: hmac, Mail: hmac, name: drop, nots: drop, city: none}}
      - {name: shop.custmers, mask: {phone: hmac}}
      - {name: shop.staff, mask: {phone: hmac}}
"""


@pytest.mark.parametrize("secret", ["a secret of some length", "of more than a block: " + 5 * "0123456789abcdef"])
def test_keys_are_those_of_hmac(secret: str) -> None:
    """SQL hashes twice, with keys that are padded before: as RFC 2104 says."""
    inner, outer, seal, before = MaskSecret(secret).keys
    assert len(inner) == len(outer) == BLOCK and before is None
    by_hand = hashlib.sha256(outer + hashlib.sha256(inner + b"555-1234").digest()).hexdigest()
    told = hmac.new(secret.encode(), b"555-1234", hashlib.sha256).hexdigest()
    assert by_hand == told == MaskSecret(secret).masked("555-1234")
    # What seals texts is the hash of no text: a column that is masked cannot give it away.
    assert seal == hmac.new(secret.encode(), b"\xffseal", hashlib.sha256).digest()
    assert MaskSecret("another secret, also long", secret).keys[3] == seal


def test_a_secret_is_named_and_not_shown() -> None:
    secret = MaskSecret("a secret of some length", "the one before it, too")
    assert "secret of" not in repr(secret) and secret.name != secret.name_before
    assert secret.name_before == MaskSecret("the one before it, too").name


def test_masks_that_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_text(PROJECT)
    (source,) = read_project_of(ProjectArguments(tmp_path)).sources
    columns = tuple(map(ColumnSeen, ("id", "PHONE", "notes", "house", "email")))
    seen = TablesSeen("shop", tables=(TableSeen("shop", ("shop", "Customers"), columns=columns),))
    told = [
        (warning.code, warning.message.split(", and its mask")[0], warning.hint) for warning in unmatched(source, seen)
    ]
    lacking = 'no row of "shop.customers" has a column'
    assert told == [
        ("mask-unmatched", f'{lacking} "Mail"', 'did you mean "email"?'),
        ("mask-unmatched", f'{lacking} "nots"', 'did you mean "notes"?'),
        ("mask-unmatched", 'no table "shop.custmers" has landed in "shop"', 'did you mean "shop.Customers"?'),
    ]
    assert list(unmatched(source, TablesSeen("shop"))) == []

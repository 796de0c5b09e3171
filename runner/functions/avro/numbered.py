"""The reader of messages that begin with the number of their schema: each becomes one row of values."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from runner.functions.avro.layout import Layout, Numbers
from runner.functions.avro.messages import REMEMBERED, Decode, Found, own_decoder, record_decoder
from runner.functions.avro.registry import AVRO, RegistrySchemas, Written
from runner.functions.avro.schema import Record, SchemaError, find, not_of_kind, parse_record, parse_schema

# The most readers of schemas that are kept, and the seconds for which an unknown number stays unknown.
MOST_SCHEMAS = 1000
UNKNOWN_SECONDS = 60.0


def numbered_decoder(layout: Layout, numbers: Numbers, folder: str) -> Callable[[bytes, str | None], Found]:
    """Returns the function that reads a message: with the schema given with the message, else with that of its number.
    Answers of a registry are kept in `folder`. The function raises RegistryFailed if the registry does not answer.
    """
    schemas = NumberedSchemas(layout, numbers, folder)
    own = lru_cache(REMEMBERED)(lambda schema: own_decoder(schema, layout))
    nothing = [None] * len(layout.slots)
    before = 1 + numbers.bytes

    def decode(message: bytes, schema: str | None) -> Found:
        if schema is not None:
            return own(schema)(message)
        if len(message) < before:
            return Found(nothing, "bad-avro", f"{len(message)} bytes, but {before} come before a record")
        if message[0]:
            why = f"its first byte is {message[0]}; before the number of a schema there is a zero"
            return Found(nothing, "bad-avro", why)
        return schemas.decoder(int.from_bytes(message[1:before], "big"))(message)

    return decode


class NumberedSchemas:
    """Makes readers of messages by the numbers of their schemas, each looked up when a message first has it."""

    def __init__(self, layout: Layout, numbers: Numbers, folder: str) -> None:
        self.layout, self.numbers = replace(layout, skip_bytes=1 + numbers.bytes), numbers
        self.registry = RegistrySchemas(numbers.registry, folder) if numbers.registry else None
        self.decoders: dict[int, Decode] = {}
        # Number -> the time at which it was last looked up and not found.
        self.unknown: dict[int, float] = {}

    def decoder(self, number: int) -> Decode:
        """Returns the function that reads messages with this number; raises RegistryFailed."""
        known = self.decoders.get(number)
        if known is None or (number in self.unknown and time.monotonic() > self.unknown[number] + UNKNOWN_SECONDS):
            known = self._made(number)
            if len(self.decoders) >= MOST_SCHEMAS:
                self.decoders.clear()
                self.unknown.clear()
            self.decoders[number] = known
        return known

    def _made(self, number: int) -> Decode:
        self.unknown.pop(number, None)
        try:
            schema = self._schema(number)
            if schema is not None:
                return record_decoder(self._complete(schema), self.layout)
        except (SchemaError, RecursionError) as error:
            return self._dead("schema-mismatch", f"the schema with the number {number} cannot be used: {error}")
        self.unknown[number] = time.monotonic()
        where = "the schema registry has none" if self.registry else f'there is no file "{number}.avsc"'
        return self._dead("schema-unknown", f"no schema has the number {number}: {where}")

    def _schema(self, number: int) -> Record | None:
        text = self.numbers.known.get(number)
        if text is not None:
            return parse_schema(text)
        found = self.registry.get(number) if self.registry else None
        return _record(found) if found else None

    def _complete(self, schema: Record) -> Record:
        """Returns the schema; raises SchemaError if it lacks a field that is required."""
        for path, kind in self.numbers.required:
            found = find(schema, path)
            if not found:
                raise SchemaError(f'it has no field "{".".join(path)}"')
            if what := not_of_kind(found, path, kind):
                raise SchemaError(f'"{".".join(path)}" is not a {what}')
        return schema

    def _dead(self, reason: str, detail: str) -> Decode:
        found = Found([None] * len(self.layout.slots), reason, detail)
        return lambda message: found


def _record(written: Written) -> Record:
    if written.kind != AVRO:
        raise SchemaError(f"its language is {written.kind}, not {AVRO}")
    return parse_record(written.schema, written.references)

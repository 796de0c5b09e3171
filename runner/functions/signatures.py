"""The signatures of the functions in Python: their names in SQL, their arguments and their results."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PythonFunction:
    """A function in Python. `arguments` and `returns` are written as in SQL; `module` is where the function is."""

    name: str
    arguments: str
    returns: str
    comment: str
    module: str = "runner.functions.udfs"


DOCUMENT = (
    "struct<values map<string,string>, types map<string,string>, as_sent array<string>, removed array<string>, "
    "reason string>"
)
RECORD = (
    "struct<topic string, partition int, offset bigint, timestamp bigint, key string, "
    "headers array<struct<key string, value string>>, value string>"
)

# The functions of every session. A function that reads the Avro of one source is made when that source is compiled.
PYTHON_FUNCTIONS = {
    one.name: one
    for one in (
        PythonFunction(
            "java_bytes",
            "texts map<string,string>",
            "map<string,string>",
            "Each value, a list of numbers from -128 to 127, as the base64 of these bytes; null if it is no such list.",
        ),
        PythonFunction(
            "escaped_bytes",
            "texts map<string,string>",
            "map<string,string>",
            "Each value, a text in which unprintable bytes are written as escapes, as the base64 of its bytes; null if "
            "it is no such text.",
        ),
        PythonFunction(
            "shell_document",
            "text string",
            DOCUMENT,
            "A document in the language of MongoDB's shell: its values as text, their types, the names of those that "
            "did not fit their type and stayed as sent; or why it cannot be read.",
        ),
        PythonFunction(
            "shell_patch",
            "text string",
            DOCUMENT,
            "The same for an update by operators, with the members that it removes.",
        ),
        PythonFunction(
            "extended_document",
            "text string",
            DOCUMENT,
            "The same for a document in MongoDB's extended JSON.",
        ),
        PythonFunction(
            "json_elements",
            "text string, path array<string>",
            "array<string>",
            "The messages in a JSON text: one for each element of the list at the path, in whose place stands that "
            "element alone; without such a list, the text itself.",
        ),
        PythonFunction(
            "topic_record",
            "line string",
            RECORD,
            "The record of a topic in a line of JSON, as kcat prints it or as people write it; null if it is none.",
        ),
        PythonFunction(
            "framed_events",
            "value binary, key string, key_starts string, value_starts string, length_bytes int",
            "array<struct<text string, damage string>>",
            "The events in a message whose key and value are frames, each after its length: a JSON text for each, with "
            "the frame of the key in `key` and that of the value in `value`; or the record in base64, and its damage.",
        ),
    )
}

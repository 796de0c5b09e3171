{#- How messages are read from where they are: one expression for each column of `<source>_messages`. They stand in one select directly on the
    scan: the number of a row in its block and what is known of the file are there and nowhere else. -#}

{%- macro files_scanned() -%} value string {%- endmacro -%}
{%- macro files_raw() -%} value {%- endmacro -%}
{#- A blank line in a file is no message. -#}
{%- macro files_is_message() -%} value rlike '[^ \\t\\r\\n]' {%- endmacro -%}
{%- macro files_origin() -%}
named_struct(
  'topic', cast(null as string), 'partition', cast(null as int), 'offset', cast(null as bigint), 'timestamp', cast(null as timestamp),
  'key', cast(null as string), 'headers', cast(null as array<struct<key string, value string>>),
  'file', _metadata.file_path, 'block', _metadata.file_block_start)
{%- endmacro -%}
{#- The lower bits of the id count rows within a task; a block is read by one task, in order. -#}
{%- macro files_arrival() -%}
array(unix_millis(_metadata.file_modification_time), xxhash64(_metadata.file_path), _metadata.file_block_start, monotonically_increasing_id() & 8589934591)
{%- endmacro -%}

{#- The layout of a Kafka dump. Columns that a table lacks are null. -#}
{%- macro table_scanned() -%}
key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, headers array<struct<key string, value binary>>
{%- endmacro -%}
{%- macro table_raw() -%} cast(value as string) {%- endmacro -%}
{%- macro table_is_message() -%} true {%- endmacro -%}
{%- macro table_origin() -%}
named_struct(
  'topic', topic, 'partition', partition, 'offset', offset, 'timestamp', timestamp,
  'key', {{ text_or_base64('key') }},
  'headers', transform(headers, h -> named_struct('key', h.key, 'value', {{ text_or_base64('h.value') }})),
  'file', _metadata.file_path, 'block', _metadata.file_block_start)
{%- endmacro -%}
{%- macro table_arrival() -%}
if(offset is null, {{ files_arrival() }}, array(offset))
{%- endmacro -%}

{#- The same, with messages that are no text. -#}
{%- macro binary_table_scanned() -%} {{ table_scanned() }} {%- endmacro -%}
{%- macro binary_table_raw() -%} value {%- endmacro -%}
{%- macro binary_table_own_schema() -%} cast(null as string) {%- endmacro -%}
{%- macro binary_table_damage() -%} cast(null as string) {%- endmacro -%}
{%- macro binary_table_is_message() -%} true {%- endmacro -%}
{%- macro binary_table_origin() -%} {{ table_origin() }} {%- endmacro -%}
{%- macro binary_table_arrival() -%} {{ table_arrival() }} {%- endmacro -%}

{#- Files that hold one or many messages, taken apart before: `block` is where in its file the block of a message begins, `number` counts in it. -#}
{%- macro binary_files_scanned() -%} path string, modificationTime timestamp, length bigint, content binary {%- endmacro -%}
{%- macro binary_files_raw() -%} raw {%- endmacro -%}
{%- macro binary_files_own_schema() -%} own_schema {%- endmacro -%}
{%- macro binary_files_damage() -%} damage {%- endmacro -%}
{%- macro binary_files_is_message() -%} true {%- endmacro -%}
{%- macro binary_files_origin() -%}
named_struct(
  'topic', cast(null as string), 'partition', cast(null as int), 'offset', cast(null as bigint), 'timestamp', cast(null as timestamp),
  'key', cast(null as string), 'headers', cast(null as array<struct<key string, value string>>), 'file', file, 'block', block)
{%- endmacro -%}
{%- macro binary_files_arrival() -%} array(modified, xxhash64(file), block, number) {%- endmacro -%}

{%- macro text_or_base64(bytes) -%}
if(is_valid_utf8(cast({{ bytes }} as string)), cast({{ bytes }} as string), base64({{ bytes }}))
{%- endmacro -%}

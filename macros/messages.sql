{#- How messages are read from where they are: one expression for each column of `<source>_messages`. They stand in one select directly on the
    scan: the number of a row in its block and what is known of the file are there and nowhere else. -#}

{%- macro files_schema() -%} value string {%- endmacro -%}
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
{%- macro table_schema() -%}
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

{%- macro text_or_base64(bytes) -%}
if(is_valid_utf8(cast({{ bytes }} as string)), cast({{ bytes }} as string), base64({{ bytes }}))
{%- endmacro -%}

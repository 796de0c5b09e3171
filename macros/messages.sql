{#- How messages are read from where they are: one expression for each column of `<source>_messages`. They stand in one select directly on the
    scan: the number of a row in its block and what is known of the file are there and nowhere else. -#}

{%- macro files_scanned(messages) -%} value string {%- endmacro -%}
{#- Lines end with LF, or with CR and LF. Byte by byte: what is no UTF-8 stays as it is. -#}
{%- macro files_raw(messages) -%}
if(endswith(value, '\r'), cast(substring(cast(value as binary), 1, octet_length(value) - 1) as string), value)
{%- endmacro -%}
{#- A blank line in a file is no message. -#}
{%- macro files_is_message(messages) -%} (value >= '!' or value rlike '[^ \\t\\r\\n]') {%- endmacro -%}
{%- macro files_origin(messages) -%}
named_struct(
  'topic', cast(null as string), 'partition', cast(null as int), 'offset', cast(null as bigint), 'timestamp', cast(null as timestamp),
  'key', cast(null as string), 'headers', cast(null as array<struct<key string, value string>>),
  'file', _metadata.file_path, 'block', _metadata.file_block_start)
{%- endmacro -%}
{#- The lower bits of the id count rows within a task; a block is read by one task, in order. -#}
{%- macro files_arrival(messages) -%}
array(unix_millis(_metadata.file_modification_time), xxhash64(_metadata.file_path), _metadata.file_block_start, monotonically_increasing_id() & 8589934591)
{%- endmacro -%}

{#- The layout of a Kafka dump. Columns that a table lacks are null. -#}
{%- macro table_scanned(messages) -%}
key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, headers array<struct<key string, value binary>>
{%- endmacro -%}
{%- macro table_raw(messages) -%} cast(value as string) {%- endmacro -%}
{%- macro table_is_message(messages) -%} true {%- endmacro -%}
{%- macro table_origin(messages) -%} {{ topic_origin('_metadata.file_path', '_metadata.file_block_start') }} {%- endmacro -%}
{%- macro table_arrival(messages) -%}
if(offset is null, {{ files_arrival(messages) }}, array(offset))
{%- endmacro -%}

{#- The same, with messages that are no text. -#}
{%- macro binary_table_scanned(messages) -%} {{ table_scanned(messages) }} {%- endmacro -%}
{%- macro binary_table_raw(messages) -%} value {%- endmacro -%}
{%- macro binary_table_own_schema(messages) -%} cast(null as string) {%- endmacro -%}
{%- macro binary_table_damage(messages) -%} cast(null as string) {%- endmacro -%}
{%- macro binary_table_is_message(messages) -%} true {%- endmacro -%}
{%- macro binary_table_origin(messages) -%} {{ table_origin(messages) }} {%- endmacro -%}
{%- macro binary_table_arrival(messages) -%} {{ table_arrival(messages) }} {%- endmacro -%}

{#- Files that hold one or many messages, taken apart before: `block` is where in its file the block of a message begins, `number` counts in it. -#}
{%- macro binary_files_scanned(messages) -%} path string, modificationTime timestamp, length bigint, content binary {%- endmacro -%}
{%- macro binary_files_raw(messages) -%} raw {%- endmacro -%}
{%- macro binary_files_own_schema(messages) -%} own_schema {%- endmacro -%}
{%- macro binary_files_damage(messages) -%} damage {%- endmacro -%}
{%- macro binary_files_is_message(messages) -%} true {%- endmacro -%}
{%- macro binary_files_origin(messages) -%}
named_struct(
  'topic', cast(null as string), 'partition', cast(null as int), 'offset', cast(null as bigint), 'timestamp', cast(null as timestamp),
  'key', cast(null as string), 'headers', cast(null as array<struct<key string, value string>>), 'file', file, 'block', block)
{%- endmacro -%}
{%- macro binary_files_arrival(messages) -%} array(modified, xxhash64(file), block, number) {%- endmacro -%}

{#- A topic. Messages behind the source's end are not its own. -#}
{%- macro kafka_scanned(messages) -%} {{ table_scanned(messages) }} {%- endmacro -%}
{%- macro kafka_raw(messages) -%} {{ table_raw(messages) }} {%- endmacro -%}
{%- macro kafka_is_message(messages) -%}
{%- if messages.topics.ending is mapping -%}
not coalesce(case concat(topic, '/', partition) {% for topic, partitions in messages.topics.ending.items() %}{% for partition, offset in partitions.items() %}when {{ text(topic ~ '/' ~ partition) }} then offset >= {{ offset }} {% endfor %}{% endfor %}end, false)
{%- elif messages.topics.ending is not none -%}
unix_millis(timestamp) < {{ messages.topics.ending }}
{%- else -%}
true
{%- endif -%}
{%- endmacro -%}
{%- macro kafka_origin(messages) -%} {{ topic_origin('null', 'null') }} {%- endmacro -%}
{#- By time where keys move between partitions: their offsets say nothing of each other. -#}
{%- macro kafka_arrival(messages) -%}
{{ 'array(unix_millis(timestamp), partition, offset)' if messages.topics.by_time else 'array(offset)' }}
{%- endmacro -%}

{%- macro binary_kafka_scanned(messages) -%} {{ kafka_scanned(messages) }} {%- endmacro -%}
{%- macro binary_kafka_raw(messages) -%} value {%- endmacro -%}
{%- macro binary_kafka_own_schema(messages) -%} cast(null as string) {%- endmacro -%}
{%- macro binary_kafka_damage(messages) -%} cast(null as string) {%- endmacro -%}
{%- macro binary_kafka_is_message(messages) -%} {{ kafka_is_message(messages) }} {%- endmacro -%}
{%- macro binary_kafka_origin(messages) -%} {{ kafka_origin(messages) }} {%- endmacro -%}
{%- macro binary_kafka_arrival(messages) -%} {{ kafka_arrival(messages) }} {%- endmacro -%}

{%- macro topic_origin(file, block) -%}
named_struct(
  'topic', topic, 'partition', partition, 'offset', offset, 'timestamp', timestamp,
  'key', {{ text_or_base64('key') }},
  'headers', transform(headers, h -> named_struct('key', h.key, 'value', {{ text_or_base64('h.value') }})),
  'file', cast({{ file }} as string), 'block', cast({{ block }} as bigint))
{%- endmacro -%}

{%- macro text_or_base64(bytes) -%}
if(is_valid_utf8(cast({{ bytes }} as string)), cast({{ bytes }} as string), base64({{ bytes }}))
{%- endmacro -%}

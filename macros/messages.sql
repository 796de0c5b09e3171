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

{#- Lines of text that have a record of a topic each. A line that is no such record is a message as it is: its format says what is wrong with it. -#}
{%- macro dumped_origin(topic, partition, offset, timestamp, key, headers, file='_metadata.file_path', block='_metadata.file_block_start') -%}
named_struct(
  'topic', {{ topic }}, 'partition', {{ partition }}, 'offset', {{ offset }}, 'timestamp', {{ timestamp }},
  'key', {{ key }}, 'headers', {{ headers }}, 'file', {{ file }}, 'block', {{ block }})
{%- endmacro -%}

{#- Objects, as kcat -J prints them or with what people know of a record. -#}
{%- macro json_files_raw(messages) -%} if(topic_record(value) is null, value, topic_record(value).value) {%- endmacro -%}
{%- macro json_files_origin(messages) -%}
{{ dumped_origin('topic_record(value).topic', 'topic_record(value).partition', 'topic_record(value).offset',
  'timestamp_millis(topic_record(value).timestamp)', 'topic_record(value).key', 'topic_record(value).headers') }}
{%- endmacro -%}
{%- macro json_files_arrival(messages) -%}
if(topic_record(value).offset is null, {{ files_arrival(messages) }}, array(topic_record(value).offset))
{%- endmacro -%}

{#- Rows that repair mirrors: each tells its place in the log of its table. -#}
{%- macro repair_files_arrival(messages) -%}
coalesce(
  concat(from_json(value, 'arrival array<bigint>').arrival, array(_metadata.file_block_start, monotonically_increasing_id() & 8589934591)),
  {{ files_arrival(messages) }})
{%- endmacro -%}

{#- What kafka-console-consumer prints: time, partition, offset, headers, key and value between tabs. It writes `null` for what is not there. -#}
{%- macro console_part(number) -%}
regexp_extract(value, r'(?s)^(?:\w+:(-?\d+)|NO_TIMESTAMP)\tPartition:(\d+)\tOffset:(\d+)\t([^\t]*)\t([^\t]*)\t(.*)$', {{ number }})
{%- endmacro -%}
{%- macro console_number(number, type) -%} cast(nullif({{ console_part(number) }}, '') as {{ type }}) {%- endmacro -%}
{%- macro console_files_raw(messages) -%} if({{ console_part(3) }} = '', value, nullif({{ console_part(6) }}, 'null')) {%- endmacro -%}
{#- A comma before a name and a colon parts headers: members of JSON have their names in quotes. -#}
{%- macro console_files_origin(messages) -%}
{%- set header = "named_struct('key', substring_index(h, ':', 1), 'value', nullif(substr(h, instr(h, ':') + 1), 'null'))" -%}
{%- set headers = "if(" ~ console_part(4) ~ " in ('', 'NO_HEADERS'), null, transform(split(" ~ console_part(4) ~ ", r',(?=[\\w.-]+:)'), h -> " ~ header ~ "))" -%}
{{ dumped_origin('cast(null as string)', console_number(2, 'int'), console_number(3, 'bigint'), 'timestamp_millis(' ~ console_number(1, 'bigint') ~ ')',
  "if(" ~ console_part(3) ~ " = '', null, nullif(" ~ console_part(5) ~ ", 'null'))", headers) }}
{%- endmacro -%}
{%- macro console_files_arrival(messages) -%}
if({{ console_part(3) }} = '', {{ files_arrival(messages) }}, array({{ console_number(3, 'bigint') }}))
{%- endmacro -%}

{#- The layout of a Kafka dump. Columns that a table lacks are null. Spark reads any integer as a bigint. -#}
{%- macro table_scanned(messages) -%}
key binary, value binary, topic string, partition bigint, offset bigint, timestamp timestamp, headers array<struct<key string, value binary>>
{%- endmacro -%}
{%- macro table_raw(messages) -%} cast(value as string) {%- endmacro -%}
{%- macro table_is_message(messages) -%} true {%- endmacro -%}
{%- macro table_origin(messages) -%} {{ topic_origin('_metadata.file_path', '_metadata.file_block_start') }} {%- endmacro -%}
{%- macro table_arrival(messages) -%}
if(offset is null, {{ files_arrival(messages) }}, array(offset))
{%- endmacro -%}

{#- The same, and a topic, with messages that are no text. -#}
{%- macro binary_table_raw(messages) -%} value {%- endmacro -%}
{%- macro binary_table_own_schema(messages) -%} cast(null as string) {%- endmacro -%}
{%- macro binary_table_damage(messages) -%} cast(null as string) {%- endmacro -%}

{#- Files that hold one or many messages, taken apart before: `block` is where in its file the block of a message begins, `number` counts in it. -#}
{%- macro binary_files_scanned(messages) -%} path string, modificationTime timestamp, length bigint, content binary {%- endmacro -%}
{%- macro binary_files_raw(messages) -%} raw {%- endmacro -%}
{%- macro binary_files_own_schema(messages) -%} own_schema {%- endmacro -%}
{%- macro binary_files_damage(messages) -%} damage {%- endmacro -%}
{%- macro binary_files_is_message(messages) -%} true {%- endmacro -%}
{%- macro binary_files_origin(messages) -%}
{{ dumped_origin('cast(null as string)', 'cast(null as int)', 'cast(null as bigint)', 'cast(null as timestamp)', 'cast(null as string)',
  'cast(null as array<struct<key string, value string>>)', 'file', 'block') }}
{%- endmacro -%}
{%- macro binary_files_arrival(messages) -%} array(modified, xxhash64(file), block, number) {%- endmacro -%}

{#- Files of rows, each of which is a message. -#}
{%- macro rows_files_raw(messages) -%} cast(raw as string) {%- endmacro -%}

{#- A topic. Messages behind the source's end are not its own. -#}
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

{%- macro topic_origin(file, block) -%}
named_struct(
  'topic', topic, 'partition', cast(partition as int), 'offset', offset, 'timestamp', timestamp,
  'key', {{ text_or_base64('key') }},
  'headers', transform(headers, h -> named_struct('key', h.key, 'value', {{ text_or_base64('h.value') }})),
  'file', cast({{ file }} as string), 'block', cast({{ block }} as bigint))
{%- endmacro -%}

{%- macro text_or_base64(bytes) -%}
if(is_valid_utf8(cast({{ bytes }} as string)), cast({{ bytes }} as string), base64({{ bytes }}))
{%- endmacro -%}

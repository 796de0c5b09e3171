{#- Tables of a target as they are copied into another one. -#}

{#- The rows of a changelog, those of each of its folders together. -#}
{%- macro changelog_copied(rows) -%}
select /*+ rebalance(kind, landed_on) */ {{ contract | map('name') | join(', ') }} from {{ name(rows) }}
{%- endmacro -%}

{#- The rows of a changelog whose messages are in files that have come into another folder, which Spark names so in its log. -#}
{%- macro changelog_of_files_in(rows, folder) -%}
select {{ contract | map('name') | join(', ') }}
from (
  select
    * except (origin),
    named_struct(
      'topic', origin.topic, 'partition', origin.partition, 'offset', origin.offset, 'timestamp', origin.timestamp, 'key', origin.key,
      'headers', origin.headers, 'file', concat({{ text(folder) }}, '/', substring_index(origin.file, '/', -1)), 'block', origin.block
    ) as origin
  from {{ name(rows) }}
)
{%- endmacro -%}

{%- macro changelog_filled(table, rows) -%}
insert into {{ table }} ({{ contract | map('name') | join(', ') }}) {{ rows }}
{%- endmacro -%}

{#- The files that a table in a folder has, as Spark's log of committed files lists them. -#}
{%- macro files_of_rows(table) -%}
select _metadata.file_path as path, max(_metadata.file_size) as size, unix_millis(max(_metadata.file_modification_time)) as modified
from {{ table }} group by all order by path
{%- endmacro -%}

{#- The number of rows, and a hash of them that does not depend on their order. Values are compared as JSON, where a whole number of a wider type is
    the same. -#}
{%- macro rows_summed(rows) -%}
select count(*) as `rows`, left(sha2(concat_ws(' ', count(*), sum(own)), 256), 16) as hash
from (select cast(xxhash64(to_json(struct(*), {{ json_as_exact() }})) as decimal(20,0)) as own from {{ name(rows) }})
{%- endmacro -%}

{%- macro json_as_exact() -%}
map('ignoreNullFields', 'false', 'timestampFormat', 'y-MM-dd HH:mm:ss.SSSSSS', 'timestampNTZFormat', 'y-MM-dd HH:mm:ss.SSSSSS')
{%- endmacro -%}
